import torch,torch.nn as nn
m=nn.Sequential(nn.Linear(256,1024),nn.ReLU(),nn.Linear(1024,256)).cuda(); o=torch.optim.Adam(m.parameters())
for e in range(10):
    for i in range(8):
        l=m(torch.randn(64,256,device="cuda")).square().mean(); o.zero_grad(); l.backward(); o.step()
    with torch.no_grad(): v=m(torch.randn(65536,256,device="cuda")).square().mean().item()
    print(e,v)
