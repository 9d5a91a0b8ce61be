import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader,TensorDataset
a=Accelerator(mixed_precision="fp16",gradient_accumulation_steps=2)
m=torch.nn.Sequential(torch.nn.Linear(64,256),torch.nn.ReLU(),torch.nn.Linear(256,10)); o=torch.optim.AdamW(m.parameters()); d=DataLoader(TensorDataset(torch.randn(640,64),torch.randint(0,10,(640,))),32)
s=torch.optim.lr_scheduler.LambdaLR(o,lambda k:1.)
m,o,d,s=a.prepare(m,o,d,s)
for e in range(5):
    for x,y in d:
        with a.accumulate(m):
            l=torch.nn.functional.cross_entropy(m(x),y); a.backward(l)
            if a.sync_gradients: a.clip_grad_norm_(m.parameters(),1.)
            o.step(); s.step(); o.zero_grad()
        if a.is_main_process: print(a.gather(l).mean().item())
