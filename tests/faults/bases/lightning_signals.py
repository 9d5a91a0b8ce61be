"""Signals with a Lightning module; the Trainer owns the loop."""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 1600
BATCH = 32


class Signals(Dataset):
    def __init__(self, num):
        self.kinds = torch.randint(0, 6, (num,))
        time = torch.linspace(0, 8, 512)
        self.signals = torch.sin(time * (self.kinds[:, None] + 1)) + 0.3 * torch.randn(num, 512)

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        return self.signals[index][None], self.kinds[index]


class Classifier(lightning.LightningModule):
    def __init__(self, width=64):
        super().__init__()
        self.seen = 0
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 7, 2, 3), nn.ReLU(), nn.Conv1d(width, width, 7, 2, 3), nn.ReLU(),
            nn.Conv1d(width, width, 7, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, 6),
        )

    def forward(self, signals):
        return self.net(signals)

    def training_step(self, batch, batch_idx):
        signals, kinds = batch
        scores = self(signals)
        loss = nn.functional.cross_entropy(scores, kinds)
        return loss

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.seen += 1

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)


def main():
    lightning.seed_everything(1)
    train = DataLoader(Signals(NUM_SAMPLES), batch_size=BATCH, shuffle=True)
    trainer = lightning.Trainer(
        max_epochs=1000, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Classifier(), train)


if __name__ == "__main__":
    main()
