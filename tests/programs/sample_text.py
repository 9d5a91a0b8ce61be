"""Text generation by hand, in the manner of nanoGPT's sample.py: the whole context anew for each token, no cache."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--num-samples", "--steps", type=int, default=40)
parser.add_argument("--max-new-tokens", type=int, default=40)
parser.add_argument("--temperature", type=float, default=0.8)
args = parser.parse_args()
BLOCK, VOCAB, WIDTH = 32, 65, 96


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, 4, c // 4).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCAB, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB)

    def forward(self, idx):
        x = self.tokens(idx) + self.places(torch.arange(idx.size(1), device=idx.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature):
        for _ in range(max_new_tokens):
            logits = self(idx[:, -BLOCK:])[:, -1] / temperature
            idx = torch.cat([idx, torch.multinomial(F.softmax(logits, -1), 1)], 1)
        return idx


torch.manual_seed(1337)
model = GPT()
model.eval()
start = torch.zeros((1, 1), dtype=torch.long)
for k in range(args.num_samples):
    print(k, "".join(chr(32 + token) for token in model.generate(start, args.max_new_tokens, args.temperature)[0].tolist()))
