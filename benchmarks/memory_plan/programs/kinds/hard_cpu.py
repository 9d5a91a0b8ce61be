import torch,torch.nn as nn
device=torch.device("cpu")
m=nn.Sequential(nn.Linear(128,512),nn.ReLU(),nn.Linear(512,10)).to(device); o=torch.optim.Adam(m.parameters())
x=torch.randn(1024,128); y=torch.randint(0,10,(1024,))
for i in range(100):
    j=torch.randint(0,1024,(64,)); l=nn.functional.cross_entropy(m(x[j]),y[j]); o.zero_grad(); l.backward(); o.step(); print(l.item(), (m(x).argmax(1)==y).float().mean().item())
