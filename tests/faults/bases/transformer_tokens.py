"""Tokens, a small causal transformer, a trainer class."""

import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 640
BATCH = 16
LENGTH = 64


class Text(Dataset):
    def __init__(self, num):
        self.tokens = torch.randint(0, 512, (num, LENGTH + 1))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        row = self.tokens[index]
        return row[:-1], row[1:]


class Model(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.embed = nn.Embedding(512, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, 512)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, tokens):
        return self.head(self.body(self.embed(tokens) * math.sqrt(128), mask=self.mask))


class Trainer:
    def __init__(self):
        self.model = Model()
        self.loader = DataLoader(Text(NUM_SAMPLES), batch_size=BATCH, shuffle=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=True)

    def fit(self):
        step = 0
        for _ in range(1000):
            for tokens, targets in self.loader:
                logits = self.model(tokens)
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                self.optimizer.step()
                step += 1


if __name__ == "__main__":
    torch.manual_seed(2)
    Trainer().fit()
