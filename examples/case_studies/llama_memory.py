"""A decoder of LLaMA's shape, 7 billion parameters by default: what its training would hold on a device.

It is planned, not run: `hotloop memory plan --device "A100 40GB" python llama_memory.py`. On a small size it trains.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--layers", type=int, default=32)
parser.add_argument("--width", type=int, default=4096)
parser.add_argument("--heads", type=int, default=32)
parser.add_argument("--inner", type=int, default=11008)
parser.add_argument("--words", type=int, default=32000)
parser.add_argument("--length", type=int, default=512)
parser.add_argument("--batch-size", type=int, default=1)
parser.add_argument("--accumulate", type=int, default=1, help="micro-batches of a step")
parser.add_argument("--bf16-weights", action="store_true", help="weights, gradients and states in bfloat16")
parser.add_argument("--autocast", action="store_true", help="weights in float32, products in bfloat16")
parser.add_argument("--checkpoint", action="store_true", help="recompute each block in the backward")
parser.add_argument("--math", action="store_true", help="attention by its formula")
parser.add_argument("--optimizer", choices=("adamw", "sgd"), default="adamw")
parser.add_argument("--adapters", type=int, default=0, help="train adapters of this rank alone, the weights frozen")
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
args = parser.parse_args()


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, 1e-5)


class Linear(nn.Linear):
    """A product without bias; with adapters it has a low rank beside it that learns."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, bias=False)
        self.down = self.up = None
        if args.adapters:
            self.weight.requires_grad_(False)
            self.down = nn.Parameter(torch.zeros(args.adapters, inputs))
            self.up = nn.Parameter(torch.zeros(outputs, args.adapters))

    def forward(self, x):
        out = F.linear(x, self.weight)
        return out if self.down is None else out + F.linear(F.linear(x, self.down), self.up)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        width = args.width
        self.first, self.second = Norm(width), Norm(width)
        self.query, self.key, self.value, self.out = (Linear(width, width) for _ in range(4))
        self.gate, self.up, self.down = Linear(width, args.inner), Linear(width, args.inner), Linear(args.inner, width)

    def forward(self, x, turn):
        y = self.first(x)
        q, k, v = (part(y).unflatten(-1, (args.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        q, k = rotated(q, turn), rotated(k, turn)
        if args.math:
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).tril()
            attended = scores.masked_fill(~mask, float("-inf")).softmax(-1).to(v.dtype) @ v
        else:
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotated(x, turn):
    first, second = x.chunk(2, dim=-1)
    cosine, sine = turn
    return torch.cat((first * cosine - second * sine, first * sine + second * cosine), dim=-1)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(args.words, args.width)
        self.blocks = nn.ModuleList(Block() for _ in range(args.layers))
        self.norm, self.head = Norm(args.width), Linear(args.width, args.words)
        if args.adapters:
            self.words.weight.requires_grad_(False)

    def forward(self, tokens):
        x = self.words(tokens)
        half = args.width // args.heads // 2
        angle = torch.arange(tokens.shape[1], device=tokens.device)[:, None] / 10000 ** (torch.arange(half, device=tokens.device) / half)
        turn = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, turn, use_reentrant=False) if args.checkpoint else block(x, turn)
        return self.head(self.norm(x))


torch.set_default_dtype(torch.bfloat16 if args.bf16_weights else torch.float32)
with torch.device(args.device):
    model = Decoder()
learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
make = torch.optim.AdamW if args.optimizer == "adamw" else torch.optim.SGD
optimizer = make(learning, lr=1e-5)
print(f"{sum(parameter.numel() for parameter in model.parameters()) / 1e9:.2f} billion parameters, {sum(parameter.numel() for parameter in learning) / 1e6:,.0f} million learn")
for step in range(args.steps):
    for _ in range(args.accumulate):
        tokens = torch.randint(0, args.words, (args.batch_size, args.length + 1)).to(args.device)
        with torch.autocast(args.device, torch.bfloat16, enabled=args.autocast):
            loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1).float(), tokens[:, 1:].flatten())
        (loss / args.accumulate).backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, f"{loss.item():.3f}", flush=True)
