import torch,torch.nn as nn
m=nn.Sequential(nn.Linear(256,1024),nn.ReLU(),nn.Linear(1024,256)).cuda(); o=torch.optim.Adam(m.parameters()); total=0
for i in range(200):
    out=m(torch.randn(512,256,device="cuda")); l=out.square().mean(); total=total+m(torch.randn(2048,256,device="cuda")).mean(); o.zero_grad(); l.backward(); o.step()
