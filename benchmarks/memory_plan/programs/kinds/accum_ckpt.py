import torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
device = "cuda"
class Block(nn.Module):
    def __init__(s,d): 
        super().__init__(); s.a=nn.MultiheadAttention(d,4,batch_first=True); s.n1=nn.LayerNorm(d); s.n2=nn.LayerNorm(d); s.m=nn.Sequential(nn.Linear(d,4*d),nn.GELU(),nn.Linear(4*d,d)); s.d=nn.Dropout(.1)
    def forward(s,x):
        h=s.n1(x); x=x+s.d(s.a(h,h,h,need_weights=False)[0]); return x+s.d(s.m(s.n2(x)))
class Net(nn.Module):
    def __init__(s):
        super().__init__(); s.e=nn.Embedding(1000,128); s.b=nn.ModuleList(Block(128) for _ in range(4)); s.h=nn.Linear(128,1000)
    def forward(s,i):
        x=s.e(i)
        for b in s.b: x=checkpoint(b,x,use_reentrant=False)
        return s.h(x)
m=Net().to(device); opt=torch.optim.AdamW(m.parameters(),3e-4)
tot=0
for step in range(200):
    ids=torch.randint(0,1000,(8,129),device=device)
    loss=nn.functional.cross_entropy(m(ids[:,:-1]).reshape(-1,1000),ids[:,1:].reshape(-1))/4
    loss.backward(); tot+=loss.item()
    if (step+1)%4==0:
        opt.step(); opt.zero_grad(); print(step,tot); tot=0
