"""Fill sudoku grids with a one-layer transformer in Lightning."""
import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


def solved_grids(count, rng):
    base = (3 * (np.arange(9)[:, None] % 3) + np.arange(9)[:, None] // 3 + np.arange(9)[None, :]) % 9
    grids = np.empty((count, 9, 9), dtype=np.int64)
    for n in range(count):
        rows = np.concatenate([3 * band + rng.permutation(3) for band in rng.permutation(3)])
        columns = np.concatenate([3 * stack + rng.permutation(3) for stack in rng.permutation(3)])
        grids[n] = rng.permutation(9)[base[rows][:, columns]]
    return torch.from_numpy(grids.reshape(count, 81))


class Puzzles(Dataset):
    def __init__(self, count, seed, blanks=0.35):
        self.grids = solved_grids(count, np.random.default_rng(seed))
        self.blanks = blanks

    def __len__(self):
        return len(self.grids)

    def __getitem__(self, i):
        solution = self.grids[i]
        hidden = torch.rand(81) < self.blanks
        return solution.masked_fill(hidden, 9), solution, hidden


class SudokuData(L.LightningDataModule):
    def __init__(self, puzzles=240, batch=24, workers=2):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        self.train_puzzles = Puzzles(self.hparams.puzzles, seed=64)

    def train_dataloader(self):
        return DataLoader(
            self.train_puzzles,
            batch_size=self.hparams.batch,
            shuffle=True,
            num_workers=self.hparams.workers,
        )


class SudokuSolver(L.LightningModule):
    def __init__(self, dim=64, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.digit = nn.Embedding(10, dim)
        self.place = nn.Parameter(0.02 * torch.randn(81, dim))
        self.layer = nn.TransformerEncoderLayer(dim, 4, dim_feedforward=2 * dim, dropout=0.0, batch_first=True,
                                                norm_first=True)
        self.read = nn.Linear(dim, 9)

    def forward(self, grid):
        return self.read(self.layer(self.digit(grid) + self.place))

    def training_step(self, batch, batch_idx):
        grid, solution, hidden = batch
        each = F.cross_entropy(self(grid).transpose(1, 2), solution, reduction="none")
        loss = (each * hidden).sum() / hidden.sum().clamp(min=1)
        self.last_loss = loss.detach()
        return loss

    def on_train_epoch_end(self):
        if self.current_epoch % 20 == 0:
            print(f"epoch {self.current_epoch} loss {self.last_loss.item():.4f}", flush=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def main():
    L.seed_everything(63)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=20_000,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(SudokuSolver(), datamodule=SudokuData())


if __name__ == "__main__":
    main()
