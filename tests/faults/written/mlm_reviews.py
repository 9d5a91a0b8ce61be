"""Masked-token pretraining of a small encoder on synthetic reviews."""
import random
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PAD, MASK, FIRST = 0, 1, 2


@dataclass
class Options:
    vocab: int = 1000
    dim: int = 64
    layers: int = 2
    heads: int = 4
    max_len: int = 72
    batch: int = 32
    mask_prob: float = 0.15
    lr: float = 8e-4
    epochs: int = 300


class Reviews(Dataset):
    def __init__(self, opts, n=4000, seed=3):
        rng = random.Random(seed)
        phrases = [[rng.randrange(FIRST, opts.vocab) for _ in range(rng.randint(3, 6))] for _ in range(300)]
        self.texts = []
        for _ in range(n):
            text = []
            while len(text) < rng.randint(48, opts.max_len - 6):
                text += phrases[rng.randrange(len(phrases))]
            self.texts.append(text[: opts.max_len])

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i]


class MaskingCollator:
    def __init__(self, opts):
        self.opts = opts
        self.rng = random.Random(1)

    def __call__(self, texts):
        longest = max(len(t) for t in texts)
        input_ids = torch.full((len(texts), longest), PAD)
        labels = torch.full((len(texts), longest), -100)
        attention = torch.zeros(len(texts), longest, dtype=torch.bool)
        for row, text in enumerate(texts):
            for col, token in enumerate(text):
                attention[row, col] = True
                draw = self.rng.random()
                if draw < self.opts.mask_prob:
                    labels[row, col] = token
                    if draw < 0.8 * self.opts.mask_prob:
                        token = MASK
                    elif draw < 0.9 * self.opts.mask_prob:
                        token = self.rng.randrange(FIRST, self.opts.vocab)
                input_ids[row, col] = token
        return input_ids, attention, labels


class Encoder(nn.Module):
    def __init__(self, opts):
        super().__init__()
        self.token = nn.Embedding(opts.vocab, opts.dim, padding_idx=PAD)
        self.position = nn.Embedding(opts.max_len, opts.dim)
        layer = nn.TransformerEncoderLayer(
            opts.dim, opts.heads, 4 * opts.dim, dropout=0.1, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, opts.layers, enable_nested_tensor=False)
        self.lm_head = nn.Linear(opts.dim, opts.vocab)
        self.register_buffer("steps", torch.arange(opts.max_len))

    def forward(self, ids, attention):
        x = self.token(ids) + self.position(self.steps[: ids.shape[1]])
        return self.lm_head(self.body(x, src_key_padding_mask=~attention))


class Pretrainer:
    def __init__(self, opts):
        self.opts = opts
        self.loader = DataLoader(
            Reviews(opts), batch_size=opts.batch, shuffle=True, drop_last=True, collate_fn=MaskingCollator(opts)
        )
        self.model = Encoder(opts)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=opts.lr)
        total = opts.epochs * len(self.loader)
        self.scheduler = torch.optim.lr_scheduler.PolynomialLR(self.optimizer, total_iters=total)
        self.criterion = nn.CrossEntropyLoss(ignore_index=-100)

    def train_step(self, ids, attention, labels):
        logits = self.model(ids, attention)
        loss = self.criterion(logits.flatten(0, 1), labels.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        return loss.detach()

    def run(self):
        for epoch in range(self.opts.epochs):
            for step, batch in enumerate(self.loader):
                loss = self.train_step(*batch)
                if step % 40 == 0:
                    print(f"epoch {epoch} step {step} mlm loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    Pretrainer(Options()).run()
