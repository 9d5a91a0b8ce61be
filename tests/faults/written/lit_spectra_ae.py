"""Lightning autoencoder for one-dimensional spectra."""
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset


def synth_spectra(n, bins=256):
    axis = torch.linspace(0, 1, bins)
    out = torch.zeros(n, bins)
    for _ in range(4):
        centre = torch.rand(n, 1)
        width = 0.01 + 0.05 * torch.rand(n, 1)
        out += torch.rand(n, 1) * torch.exp(-((axis - centre) / width) ** 2)
    return out + 0.01 * torch.randn(n, bins)


class SpectraData(L.LightningDataModule):
    def __init__(self, n_train=40_960, n_val=2_048, batch_size=256):
        super().__init__()
        self.n_train, self.n_val, self.batch_size = n_train, n_val, batch_size

    def setup(self, stage):
        data = synth_spectra(self.n_train + self.n_val)
        self.train_set = TensorDataset(data[: self.n_train])
        self.val_set = TensorDataset(data[self.n_train :])

    def train_dataloader(self):
        sampler = BatchSampler(RandomSampler(self.train_set), self.batch_size, drop_last=True)
        return DataLoader(self.train_set, sampler=sampler, batch_size=None)

    def val_dataloader(self):
        sampler = BatchSampler(SequentialSampler(self.val_set), 512, drop_last=False)
        return DataLoader(self.val_set, sampler=sampler, batch_size=None)


class SpectraAE(L.LightningModule):
    def __init__(self, bins=256, hidden=1024, latent=128, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(bins, hidden), nn.SiLU(), nn.Linear(hidden, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, bins))

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        loss = F.mse_loss(self(x), x)
        self.log("train_loss", loss, on_step=False, on_epoch=True, batch_size=len(x))
        return loss

    def validation_step(self, batch, batch_idx):
        (x,) = batch
        self.log("val_loss", F.mse_loss(self(x), x), batch_size=len(x))

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            value = self.trainer.callback_metrics["val_loss"]
            print(f"epoch {self.current_epoch} val_loss {value:.5f}", flush=True)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr, fused=True)
        sched = torch.optim.lr_scheduler.StepLR(opt, step_size=40, gamma=0.7)
        return {"optimizer": opt, "lr_scheduler": sched}


def main():
    L.seed_everything(3)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=400,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(SpectraAE(), datamodule=SpectraData())


if __name__ == "__main__":
    main()
