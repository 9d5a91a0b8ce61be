"""Shape recognition with Lightning."""
import gc

import lightning as L
import psutil
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback
from torch.utils.data import DataLoader, Dataset

SHAPES = ("disc", "square", "cross", "ring", "bar")


class ShapeImages(Dataset):
    def __init__(self, n, size=32, seed=0):
        gen = torch.Generator().manual_seed(seed)
        axis = torch.linspace(-1, 1, size)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        r = (x**2 + y**2).sqrt()
        masks = [r < 0.5, (x.abs() < 0.45) & (y.abs() < 0.45), (x.abs() < 0.15) | (y.abs() < 0.15),
                 (r > 0.35) & (r < 0.6), y.abs() < 0.2]
        stencil = torch.stack(masks).float()
        self.labels = torch.randint(0, len(SHAPES), (n,), generator=gen)
        colour = torch.rand(n, 3, 1, 1, generator=gen)
        self.images = stencil[self.labels].unsqueeze(1) * colour
        self.images += 0.3 * torch.randn(n, 3, size, size, generator=gen)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class MemoryWatch(Callback):
    """Keeps the resident size of long runs in check."""

    def __init__(self, limit_gb=16.0):
        self.limit = limit_gb * 2**30
        self.process = psutil.Process()
        self.peak = 0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        gc.collect()
        resident = self.process.memory_info().rss
        self.peak = max(self.peak, resident)
        if resident > self.limit:
            trainer.should_stop = True

    def on_train_epoch_end(self, trainer, pl_module):
        print(f"epoch {trainer.current_epoch} peak memory {self.peak / 2**20:.0f} MiB", flush=True)


class ShapeNet(L.LightningModule):
    def __init__(self, width=32, lr=0.03):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 4 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(4 * width * 16, 128), nn.ReLU(), nn.Linear(128, len(SHAPES)),
        )

    def training_step(self, batch, batch_idx):
        images, labels = batch
        loss = F.cross_entropy(self.net(images), labels)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        images, labels = batch
        accuracy = (self.net(images).argmax(1) == labels).float().mean()
        self.log("accuracy", accuracy)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 200)]


def main():
    L.seed_everything(10)
    train = DataLoader(ShapeImages(6400, seed=1), batch_size=64, shuffle=True, drop_last=True)
    val = DataLoader(ShapeImages(256, seed=2), batch_size=128)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=200,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[MemoryWatch()],
    )
    trainer.fit(ShapeNet(), train, val)


if __name__ == "__main__":
    main()
