import torch
from transformers import GPT2Config,GPT2LMHeadModel,Trainer,TrainingArguments
class D(torch.utils.data.Dataset):
    def __len__(s): return 512
    def __getitem__(s,i):
        g=torch.Generator().manual_seed(i); x=torch.randint(0,500,(64,),generator=g); return {"input_ids":x,"labels":x}
m=GPT2LMHeadModel(GPT2Config(vocab_size=500,n_embd=128,n_layer=3,n_head=4,n_positions=64))
a=TrainingArguments("out",per_device_train_batch_size=8,bf16=True,max_steps=100,logging_steps=5,report_to=[],dataloader_num_workers=0,gradient_checkpointing=True,save_strategy="no",optim="adamw_torch_fused")
Trainer(m,a,train_dataset=D()).train()
