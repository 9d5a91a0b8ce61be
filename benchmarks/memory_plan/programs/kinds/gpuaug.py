import torch,torch.nn as nn,random
m=nn.Sequential(nn.Conv2d(3,32,3),nn.ReLU(),nn.AdaptiveAvgPool2d(4),nn.Flatten(),nn.Linear(512,10)).cuda(); o=torch.optim.SGD(m.parameters(),.1)
stream=torch.cuda.Stream(); rng=torch.Generator(device="cuda"); rng.manual_seed(0)
for i in range(60):
    with torch.cuda.stream(stream): x=torch.rand(16,3,40,40).pin_memory().to("cuda",non_blocking=True)
    torch.cuda.current_stream().wait_stream(stream); x.record_stream(torch.cuda.current_stream())
    if torch.rand(1,device="cuda").item()<.5: x=x.flip(-1)
    lam=torch.distributions.Beta(1.,1.).sample().cuda(); perm=torch.randperm(16).cuda(); x=lam*x+(1-lam)*x[perm]
    n=torch.randn(x.shape,device="cuda",generator=rng); y=torch.cuda.LongTensor(16).random_(0,10) if False else torch.randint(10,(16,)).cuda()
    l=nn.functional.cross_entropy(m(x+.1*n),y); o.zero_grad(); l.backward(); o.step()
    torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats(); print(i,l.item())
