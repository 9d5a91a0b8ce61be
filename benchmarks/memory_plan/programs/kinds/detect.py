# data-dependent shapes: nonzero, boolean mask, unique, topk, nms-like loop
import torch, torch.nn as nn
m=nn.Sequential(nn.Conv2d(3,32,3,padding=1),nn.ReLU(),nn.Conv2d(32,5,1)).cuda()
opt=torch.optim.Adam(m.parameters())
for i in range(100):
    x=torch.randn(4,3,64,64).cuda()
    out=m(x); scores=out[:,0]; boxes=out[:,1:].permute(0,2,3,1)
    loss=0
    for s,b in zip(scores,boxes):
        keep=s.sigmoid()>0.5
        sel=b[keep]
        if sel.numel()==0: continue
        idx=torch.nonzero(keep)
        top=s[keep].topk(min(50,int(keep.sum()))).values
        u=torch.unique(idx[:,0])
        while sel.shape[0]>1000: sel=sel[::2]
        loss=loss+sel.abs().mean()+top.mean()+0*u.float().sum()
    opt.zero_grad(); loss.backward(); opt.step()
    print(i,float(loss), [int(k) for k in u[:3].tolist()])
