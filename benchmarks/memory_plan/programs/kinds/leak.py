import torch,torch.nn as nn
m=nn.Sequential(nn.Linear(256,1024),nn.ReLU(),nn.Linear(1024,256)).cuda(); o=torch.optim.Adam(m.parameters()); hist=[]
for i in range(200):
    out=m(torch.randn(512,256,device="cuda")); l=out.square().mean(); o.zero_grad(); l.backward(); o.step(); hist.append(m(torch.randn(512,256,device="cuda")))
