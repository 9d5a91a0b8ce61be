import torch
w=torch.randn(512,512,device="cuda",requires_grad=True); b=torch.zeros(512,device="cuda",requires_grad=True)
for i in range(100):
    x=torch.randn(64,512,device="cuda"); l=(x@w+b).square().mean(); l.backward()
    with torch.no_grad():
        for p in (w,b): p-=.01*p.grad; p.grad=None
    print(l.item())
