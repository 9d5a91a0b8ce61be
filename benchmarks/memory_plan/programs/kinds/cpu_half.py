import torch,torch.nn as nn
m=nn.Linear(64,64); o=torch.optim.SGD(m.parameters(),.1)
for i in range(40):
    with torch.autocast("cpu",dtype=torch.bfloat16): l=m(torch.randn(8,64)).square().mean()
    o.zero_grad(); l.backward(); o.step(); print(l.item(), l.numpy() if not l.requires_grad else l.detach().numpy())
