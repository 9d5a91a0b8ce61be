import torch,lightning as L
from torch.utils.data import DataLoader,TensorDataset
class M(L.LightningModule):
    def __init__(s):
        super().__init__(); s.n=torch.nn.Sequential(torch.nn.Linear(64,256),torch.nn.ReLU(),torch.nn.Linear(256,10))
    def training_step(s,b,i):
        l=torch.nn.functional.cross_entropy(s.n(b[0]),b[1]); s.log("loss",l,prog_bar=True); return l
    def validation_step(s,b,i): s.log("v",torch.nn.functional.cross_entropy(s.n(b[0]),b[1]))
    def configure_optimizers(s):
        o=torch.optim.AdamW(s.parameters()); return {"optimizer":o,"lr_scheduler":torch.optim.lr_scheduler.StepLR(o,1)}
d=DataLoader(TensorDataset(torch.randn(640,64),torch.randint(0,10,(640,))),32)
L.Trainer(accelerator="gpu",devices=1,max_epochs=3,precision="16-mixed",logger=False,enable_checkpointing=False).fit(M(),d,d)
