import torch,torch.nn as nn
m=nn.Sequential(nn.Linear(64,64),nn.ReLU(),nn.Linear(64,1)).cuda(); o=torch.optim.SGD(m.parameters(),.1)
x=torch.randn(32,64,device="cuda"); y=torch.randn(32,1,device="cuda")
s=torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    for _ in range(3): o.zero_grad(set_to_none=True); l=(m(x)-y).square().mean(); l.backward(); o.step()
torch.cuda.current_stream().wait_stream(s)
g=torch.cuda.CUDAGraph(); o.zero_grad(set_to_none=True)
with torch.cuda.graph(g):
    l=(m(x)-y).square().mean(); l.backward(); o.step()
for i in range(20): x.copy_(torch.randn(32,64)); g.replay(); print(l.item())
