"""GPT-2 small with an untied head, as a book builds it by hand, and step by step with torch's own parts.

`--own` attention, normalization and GELU are written out; `--kept-mask` each layer has a mask of its own.
"""

import argparse
import math

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--own", action="store_true", help="layer norm and GELU written out")
parser.add_argument("--own-attention", action="store_true")
parser.add_argument("--kept-mask", action="store_true")
parser.add_argument("--fused", action="store_true")
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--length", type=int, default=1024)
parser.add_argument("--width", type=int, default=768)
parser.add_argument("--heads", type=int, default=12)
parser.add_argument("--layers", type=int, default=12)
parser.add_argument("--vocab", type=int, default=50257)
parser.add_argument("--steps", type=int, default=8)
args = parser.parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class OwnNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.scale * ((x - mean) / torch.sqrt(var + 1e-5)) + self.shift


class OwnGELU(nn.Module):
    def forward(self, x):
        root = torch.sqrt(torch.tensor(2.0 / math.pi))
        return 0.5 * x * (1 + torch.tanh(root * (x + 0.044715 * torch.pow(x, 3))))


class OwnAttention(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out, self.drop = nn.Linear(width, width), nn.Dropout(0.1)
        if args.kept_mask:
            self.register_buffer("mask", torch.triu(torch.ones(length, length), diagonal=1))

    def forward(self, x):
        batch, length, width = x.shape
        k, q, v = (f(x).view(batch, length, self.heads, -1).transpose(1, 2) for f in (self.k, self.q, self.v))
        scores = q @ k.transpose(2, 3)
        if args.kept_mask:
            mask = self.mask.bool()[:length, :length]
        else:
            mask = torch.triu(torch.ones(length, length, dtype=torch.bool, device=x.device), diagonal=1)
        scores.masked_fill_(mask, -torch.inf)
        weights = self.drop(torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1))
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Attention(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(
            q, k, v, dropout_p=0.1 if self.training else 0.0, is_causal=True
        )
        return self.out(y.transpose(1, 2).contiguous().view(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        norm = OwnNorm if args.own else nn.LayerNorm
        gelu = OwnGELU() if args.own else nn.GELU(approximate="tanh")
        self.attention = (OwnAttention if args.own_attention else Attention)(width, heads, length)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), gelu, nn.Linear(4 * width, width))
        self.norm1, self.norm2, self.drop = norm(width), norm(width), nn.Dropout(0.1)

    def forward(self, x):
        x = self.drop(self.attention(self.norm1(x))) + x
        return self.drop(self.mlp(self.norm2(x))) + x


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        width = args.width
        self.tokens, self.places = nn.Embedding(args.vocab, width), nn.Embedding(args.length, width)
        self.drop = nn.Dropout(0.1)
        self.blocks = nn.Sequential(*[Block(width, args.heads, args.length) for _ in range(args.layers)])
        self.norm = OwnNorm(width) if args.own else nn.LayerNorm(width)
        self.head = nn.Linear(width, args.vocab, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(self.drop(x))))


def loss_of(model):
    ids = torch.randint(0, args.vocab, (args.batch, args.length + 1))
    inputs, targets = ids[:, :-1].to(device), ids[:, 1:].to(device)
    logits = model(inputs)
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


model = GPT().to(device)
if args.bf16:
    model = model.to(torch.bfloat16)
optimizer = torch.optim.AdamW(
    model.parameters(), lr=5e-4, weight_decay=0.1, **({"fused": True} if args.fused else {})
)
for step in range(args.steps):
    model.train()
    optimizer.zero_grad()
    loss = loss_of(model)
    loss.backward()
    optimizer.step()
    if step == 0:
        model.eval()
        with torch.no_grad():
            print(f"step {step} loss {loss.item():.3f}, held out {loss_of(model).item():.3f}")
