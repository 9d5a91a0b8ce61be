"""A LightningModule with a Trainer: validation, a CSV logger, a checkpoint callback, a progress bar.

The optimizer is stepped with a closure that holds forward and backward.
"""

import argparse

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class LitClassifier(L.LightningModule):
    def __init__(self, hidden=128, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 64, hidden), nn.ReLU(), nn.Linear(hidden, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val_acc", (logits.argmax(1) == y).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)}


class Blobs(L.LightningDataModule):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        g = torch.Generator().manual_seed(0)
        prototypes = torch.randn(10, 1, 16, 16, generator=g)
        labels = torch.randint(0, 10, (6000,), generator=g)
        images = prototypes[labels] + 1.5 * torch.randn(6000, 1, 16, 16, generator=g)
        self.train = TensorDataset(images[:5000], labels[:5000])
        self.val = TensorDataset(images[5000:], labels[5000:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=256)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_epochs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=-1)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--root", default="runs/lightning")
    args = parser.parse_args()
    L.seed_everything(7)
    trainer = L.Trainer(
        max_epochs=args.max_epochs,
        max_steps=args.steps,
        accelerator="auto",
        devices=1,
        accumulate_grad_batches=args.accumulate,
        logger=CSVLogger(args.root, name="blobs"),
        callbacks=[ModelCheckpoint(monitor="val_loss", save_last=True)],
        log_every_n_steps=10,
        default_root_dir=args.root,
    )
    trainer.fit(LitClassifier(), datamodule=Blobs(args.batch_size))
    print("finished at step", trainer.global_step)
