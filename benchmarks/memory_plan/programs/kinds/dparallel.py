import torch,torch.nn as nn
net=nn.DataParallel(nn.Sequential(nn.Linear(100,400),nn.ReLU(),nn.Linear(400,10))).cuda()
opt=torch.optim.Adam(net.parameters())
for i in range(50):
    x=torch.randn(32,100).cuda(); l=net(x).square().mean(); opt.zero_grad(); l.backward(); opt.step(); print(l.item())
