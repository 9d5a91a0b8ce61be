"""Classify windows of vital signs with a small mixer, Lightning and torchmetrics."""
import tempfile

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

STATES = 5
PATCHES, PATCH = 32, 24


class VitalsData(L.LightningDataModule):
    def __init__(self, batch=64):
        super().__init__()
        self.batch = batch

    def setup(self, stage=None):
        gen = torch.Generator().manual_seed(40)
        template = torch.randn(STATES, PATCHES, PATCH, generator=gen)
        self.parts = {}
        for name, count in (("fit", 9_600), ("check", 640)):
            state = torch.randint(0, STATES, (count,), generator=gen)
            noise = torch.randn(count, PATCHES, PATCH, generator=gen)
            self.parts[name] = TensorDataset(0.25 * template[state] + noise, state)

    def train_dataloader(self):
        return DataLoader(self.parts["fit"], batch_size=self.batch, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.parts["check"], batch_size=128)


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.norm_tokens, self.norm_channels = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tokens = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.channels = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.tokens(self.norm_tokens(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm_channels(x))


class VitalsModel(L.LightningModule):
    def __init__(self, dim=96, depth=3, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Linear(PATCH, dim)
        self.blocks = nn.Sequential(*[MixerBlock(PATCHES, dim) for _ in range(depth)])
        self.head = nn.Linear(dim, STATES)
        self.train_accuracy = MulticlassAccuracy(STATES, average="micro", validate_args=False)
        self.check_accuracy = MulticlassAccuracy(STATES, average="micro", validate_args=False)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)).mean(dim=1))

    def training_step(self, batch, batch_idx):
        x, state = batch
        logits = self(x)
        loss = F.cross_entropy(logits, state)
        self.train_accuracy(logits, state)
        self.log("train/loss", loss)
        self.log("train/accuracy", self.train_accuracy, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, state = batch
        logits = self(x)
        self.check_accuracy(logits, state)
        self.log("check/loss", F.cross_entropy(logits, state))
        self.log("check/accuracy", self.check_accuracy)

    def on_train_epoch_end(self):
        loss = self.trainer.callback_metrics["train/loss"]
        print(f"epoch {self.current_epoch} loss {loss.item():.4f}", flush=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)]


if __name__ == "__main__":
    L.seed_everything(40)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=400,
        gradient_clip_val=1.0,
        logger=CSVLogger(tempfile.mkdtemp(prefix="vitals_")),
        log_every_n_steps=50,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(VitalsModel(), datamodule=VitalsData())
