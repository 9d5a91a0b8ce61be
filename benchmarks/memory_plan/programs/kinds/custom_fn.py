import torch,torch.nn as nn
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx,x): ctx.save_for_backward(x); return x.clamp(min=0)
    @staticmethod
    def backward(ctx,g): x,=ctx.saved_tensors; return g*(x>0)
class M(nn.Module):
    def __init__(s): super().__init__(); s.a=nn.Linear(256,256); s.b=nn.Linear(256,256); s.register_buffer("k",torch.ones(256))
    def forward(s,x): return s.b(F.apply(s.a(x)))*s.k
m=M().to("cuda"); o=torch.optim.AdamW(m.parameters()); sc=torch.amp.GradScaler("cuda")
prev=None
for i in range(50):
    x=torch.randn(128,256).to("cuda")
    with torch.amp.autocast("cuda",torch.float16): l=m(x).square().mean()
    o.zero_grad(); sc.scale(l).backward(); sc.step(o); sc.update()
    print(repr(l), l.detach().cpu().numpy(), sc.get_scale(), x.device, next(m.parameters()).is_cuda, x.type(), str(m.k[:2]))
