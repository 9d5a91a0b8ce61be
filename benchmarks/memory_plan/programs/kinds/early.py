import torch,torch.nn as nn,sys,copy
if not torch.cuda.is_available(): sys.exit("No GPU")
print(torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).total_memory, torch.cuda.device_count(), torch.version.cuda, torch.backends.cudnn.version(), torch.cuda.mem_get_info())
m=nn.Sequential(nn.Linear(20,64),nn.ReLU(),nn.Linear(64,1)).cuda()
torch.save(m.state_dict(),"x.pt"); m.load_state_dict(torch.load("x.pt",map_location="cuda"))
opt=torch.optim.Adam(m.parameters()); best=1e9; bad=0
X=torch.randn(1000,20).cuda(); Y=torch.randn(1000,1).cuda()
for ep in range(100):
    perm=torch.randperm(1000,device='cuda')
    for k in range(0,1000,100):
        idx=perm[k:k+100]
        with torch.set_grad_enabled(True):
            l=((m(X[idx])-Y[idx])**2).mean()
        assert torch.isfinite(l).all()
        if torch.isnan(l): raise RuntimeError("nan loss")
        if not torch.isfinite(l).item(): break
        opt.zero_grad(); l.backward()
        tn=torch.nn.utils.clip_grad_norm_(m.parameters(),1.,error_if_nonfinite=True); opt.step()
        torch.cuda.synchronize()
    m.eval()
    with torch.no_grad(): v=((m(X)-Y)**2).mean()
    m.train()
    if v<best: best=v; bad=0; sd=copy.deepcopy(m.state_dict()); torch.save({"m":m.state_dict(),"o":opt.state_dict()},"y.pt")
    else: bad+=1
    if bad>5: break
    print(ep,v.item(),f"{v:.4f}",best)
