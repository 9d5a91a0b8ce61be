import torch,torch.nn as nn
class MoE(nn.Module):
    def __init__(s,d=128,n=4): super().__init__(); s.g=nn.Linear(d,n); s.e=nn.ModuleList(nn.Sequential(nn.Linear(d,4*d),nn.GELU(),nn.Linear(4*d,d)) for _ in range(n))
    def forward(s,x):
        b=x.shape; x=x.reshape(-1,b[-1]); w,i=s.g(x).softmax(-1).topk(2); out=torch.zeros_like(x)
        for k,e in enumerate(s.e):
            r,c=torch.where(i==k)
            out.index_add_(0,r,e(x[r])*w[r,c,None])
        return out.view(b)
m=nn.Sequential(MoE(),MoE()).cuda(); o=torch.optim.Adam(m.parameters())
for i in range(50):
    l=m(torch.randn(8,64,128,device="cuda")).square().mean(); o.zero_grad(); l.backward(); o.step(); print(l.item())
