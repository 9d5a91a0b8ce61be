import torch, torch.nn as nn
dev=torch.device("cuda:0")
torch.cuda.set_device(0)
m=nn.Sequential(*[nn.Sequential(nn.Linear(512,2048),nn.GELU(),nn.Linear(2048,512)) for _ in range(4)]).to(dev)
m=torch.compile(m)
opt=torch.optim.AdamW(m.parameters(),fused=True)
for i in range(100):
    x=torch.randn(64,512,device=dev)
    with torch.autocast("cuda",dtype=torch.bfloat16):
        loss=m(x).float().pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if i%10==0: print(i,loss.item(), torch.cuda.memory_summary()[:10])
