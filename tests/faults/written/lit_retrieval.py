"""Two-tower product retrieval with in-batch negatives."""
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class QueryProductPairs(Dataset):
    """Batches of matching query and product vectors, cut from two matrices."""

    def __init__(self, pairs, batch, seed):
        gen = torch.Generator().manual_seed(seed)
        topic = torch.randn(pairs, 32, generator=gen)
        self.query = topic @ torch.randn(32, 256, generator=gen) + torch.randn(pairs, 256, generator=gen)
        self.product = topic @ torch.randn(32, 256, generator=gen) + torch.randn(pairs, 256, generator=gen)
        self.batch = batch

    def __len__(self):
        return len(self.query) // self.batch

    def __getitem__(self, i):
        rows = slice(i * self.batch, (i + 1) * self.batch)
        return self.query[rows], self.product[rows]


class Tower(nn.Sequential):
    def __init__(self, inputs, width, out):
        super().__init__(nn.Linear(inputs, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, out))

    def forward(self, x):
        return F.normalize(super().forward(x), dim=1)


class RetrievalScores:
    """Reciprocal rank, hit rate and margin of the matching product."""

    def __init__(self, top=5):
        self.top = top
        self.reset()

    def reset(self):
        self.reciprocal, self.hits, self.margin, self.count = 0.0, 0, 0.0, 0

    def update(self, similarity):
        for i in range(similarity.size(0)):
            match = similarity[i, i].item()
            rank = (similarity[i] > match).sum().item() + 1
            rival = similarity[i].topk(2).values.min().item()
            self.reciprocal += 1.0 / rank
            self.hits += rank <= self.top
            self.margin += match - rival
            self.count += 1

    def compute(self):
        return {"mrr": self.reciprocal / self.count, "hits": self.hits / self.count, "margin": self.margin / self.count}


class TwoTowers(L.LightningModule):
    def __init__(self, width=512, out=128, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.query_tower, self.product_tower = Tower(256, width, out), Tower(256, width, out)
        self.scale = nn.Parameter(torch.tensor(2.5))
        self.scores = RetrievalScores()

    def training_step(self, batch, batch_idx):
        query, product = batch
        similarity = self.query_tower(query) @ self.product_tower(product).T
        logits = similarity * self.scale.exp()
        target = torch.arange(len(logits))
        loss = 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))
        self.scores.update(similarity.detach())
        return loss

    def on_train_epoch_end(self):
        summary = " ".join(f"{name} {value:.3f}" for name, value in self.scores.compute().items())
        print(f"epoch {self.current_epoch} {summary}", flush=True)
        self.scores.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.02)


def main():
    L.seed_everything(44)
    pairs = DataLoader(QueryProductPairs(19_200, 192, seed=45), batch_size=None, shuffle=True)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=1_000,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(TwoTowers(), pairs)


if __name__ == "__main__":
    main()
