import torch,lightning as L
from torch.utils.data import DataLoader,TensorDataset
f=L.Fabric(accelerator="cuda",devices=1,precision="bf16-mixed"); f.launch(); L.seed_everything(1)
m=torch.nn.Sequential(torch.nn.Linear(64,256),torch.nn.ReLU(),torch.nn.Linear(256,10)); o=torch.optim.Adam(m.parameters()); m,o=f.setup(m,o)
d=f.setup_dataloaders(DataLoader(TensorDataset(torch.randn(640,64),torch.randint(0,10,(640,))),32))
for e in range(5):
    for i,(x,y) in enumerate(d):
        l=torch.nn.functional.cross_entropy(m(x),y); o.zero_grad(); f.backward(l); o.step()
        if i%5==0: print(f"{l:.4f}")
print(torch.cuda.max_memory_reserved())
