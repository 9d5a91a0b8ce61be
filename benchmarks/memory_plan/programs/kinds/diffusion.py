import torch,torch.nn as nn,torch.nn.functional as F
dev=torch.device("cuda")
class U(nn.Module):
    def __init__(s,c=64):
        super().__init__(); s.i=nn.Conv2d(3,c,3,padding=1); s.t=nn.Linear(1,c); s.d=nn.Conv2d(c,2*c,4,2,1); s.m=nn.Sequential(nn.GroupNorm(8,2*c),nn.SiLU(),nn.Conv2d(2*c,2*c,3,padding=1)); s.a=nn.MultiheadAttention(2*c,4,batch_first=True); s.u=nn.ConvTranspose2d(2*c,c,4,2,1); s.o=nn.Conv2d(2*c,3,3,padding=1)
    def forward(s,x,t):
        h=s.i(x)+s.t(t[:,None].float())[:,:,None,None]; d=s.d(h); d=d+s.m(d); b,c,hh,w=d.shape; z=d.flatten(2).transpose(1,2); d=d+s.a(z,z,z)[0].transpose(1,2).view(b,c,hh,w); return s.o(torch.cat([s.u(d),h],1))
net=U().to(dev); ema=U().to(dev); ema.load_state_dict(net.state_dict()); ema.requires_grad_(False)
betas=torch.linspace(1e-4,.02,1000,device=dev); ac=torch.cumprod(1-betas,0)
opt=torch.optim.AdamW(net.parameters(),1e-4)
for i in range(100):
    x=torch.rand(16,3,32,32).to(dev); t=torch.randint(0,1000,(16,),device=dev); n=torch.randn_like(x); a=ac[t][:,None,None,None]
    loss=F.mse_loss(net(a.sqrt()*x+(1-a).sqrt()*n,t),n); opt.zero_grad(set_to_none=True); loss.backward(); opt.step()
    with torch.no_grad():
        for p,q in zip(ema.parameters(),net.parameters()): p.lerp_(q,.01)
    if i%20==0: print(loss.item())
