import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.cuda.amp import autocast, GradScaler
def main():
    assert torch.cuda.is_available(), "needs a GPU"
    torch.backends.cudnn.benchmark = True
    torch.cuda.manual_seed_all(0)
    ds = TensorDataset(torch.randn(512,3,32,32), torch.randint(0,10,(512,)))
    dl = DataLoader(ds, batch_size=32, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True)
    net = nn.Sequential(nn.Conv2d(3,64,3,padding=1),nn.BatchNorm2d(64),nn.ReLU(inplace=True),nn.MaxPool2d(2),nn.Conv2d(64,128,3,padding=1),nn.BatchNorm2d(128),nn.ReLU(inplace=True),nn.AdaptiveAvgPool2d(1),nn.Flatten(),nn.Linear(128,10)).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=.1, momentum=.9); scaler = GradScaler()
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, .1, total_steps=1000)
    for ep in range(50):
        for i,(x,y) in enumerate(dl):
            x = x.cuda(non_blocking=True); y = y.cuda(non_blocking=True)
            with autocast():
                out = net(x); loss = nn.functional.cross_entropy(out,y)
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(opt); scaler.update(); opt.zero_grad(set_to_none=True); sched.step()
            acc = (out.argmax(1)==y).float().mean().item()
            print(f"{i} {loss.item():.3f} acc {acc:.2f} mem {torch.cuda.max_memory_allocated()/2**20:.0f}MiB lr {sched.get_last_lr()[0]}")
if __name__=="__main__": main()
