import torch
from transformers import BertConfig,BertForSequenceClassification,Trainer,TrainingArguments,DataCollatorWithPadding
class D(torch.utils.data.Dataset):
    def __len__(s): return 512
    def __getitem__(s,i):
        g=torch.Generator().manual_seed(i); n=10+i%50; x=torch.randint(1,500,(64,),generator=g); m=(torch.arange(64)<n).long(); return {"input_ids":x,"attention_mask":m,"labels":torch.tensor(i%3)}
m=BertForSequenceClassification(BertConfig(vocab_size=500,hidden_size=128,num_hidden_layers=3,num_attention_heads=4,intermediate_size=256,num_labels=3))
a=TrainingArguments("out",per_device_train_batch_size=8,fp16=True,gradient_accumulation_steps=2,max_steps=60,logging_steps=2,report_to=[],eval_strategy="steps",eval_steps=4,save_steps=3)
Trainer(m,a,train_dataset=D(),eval_dataset=D()).train()
