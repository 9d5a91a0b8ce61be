"""A GPT-like program: six blocks, dropout, a vocabulary of 8,192."""

import os
import time

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, LENGTH, BATCH = 8192, 192, 128, 8
DROPOUT = float(os.environ.get("DROPOUT", "0.1"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(DROPOUT)
        )

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (6, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(6)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


torch.manual_seed(0)
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses, times = [], []
for _ in range(int(os.environ.get("STEPS", "8"))):
    start = time.perf_counter()
    ids = torch.randint(VOCABULARY, (BATCH, LENGTH))
    logits = model(ids)
    loss = F.cross_entropy(logits.view(-1, VOCABULARY), ids.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    times.append(time.perf_counter() - start)
print("RESULT", {"losses": losses, "step_s": sorted(times[3:])[len(times[3:]) // 2]})
