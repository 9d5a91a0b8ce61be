"""Byte-level language model with a home-made status line."""
import shutil
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

CONTEXT, BATCH, DIM, HEADS, DEPTH = 64, 4, 64, 4, 8


class StatusLine:
    """Progress, speed and health of a model on one terminal line."""

    def __init__(self, total, model, width=24):
        self.total, self.model, self.width = total, model, width
        self.done, self.begin = 0, time.perf_counter()

    def health(self):
        worst, typical, drift, ratio = 0.0, 0.0, 0.0, 0.0
        for p in self.model.parameters():
            size = p.grad.abs()
            worst = max(worst, size.max().item())
            typical = max(typical, size.median().item())
            drift += p.detach().mean().item() ** 2
            ratio = max(ratio, p.grad.norm().item() / (p.detach().norm().item() + 1e-8))
        return f"max {worst:.1e} med {typical:.1e} drift {drift:.1e} g/w {ratio:.1e}"

    def advance(self, loss):
        self.done += 1
        filled = int(self.width * self.done / self.total)
        speed = self.done / (time.perf_counter() - self.begin)
        text = (f"[{'=' * filled}{' ' * (self.width - filled)}] {self.done}/{self.total} "
                f"{speed:.1f}/s loss {loss.item():.3f} {self.health()}")
        sys.stderr.write("\r" + text[: shutil.get_terminal_size((150, 20)).columns])
        sys.stderr.flush()


class DecoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ByteDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.byte, self.place = nn.Embedding(256, DIM), nn.Embedding(CONTEXT, DIM)
        self.blocks = nn.Sequential(*[DecoderBlock() for _ in range(DEPTH)])
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, 256)

    def forward(self, data):
        x = self.byte(data) + self.place.weight[: data.size(1)]
        return self.head(self.norm(self.blocks(x)))


def synthetic_bytes(count):
    gen = torch.Generator().manual_seed(4)
    phrase = torch.randint(32, 127, (400, 12), generator=gen)
    return phrase[torch.randint(0, 400, (count // 12,), generator=gen)].flatten()


def main(steps=60_000):
    torch.manual_seed(2)
    stream = synthetic_bytes(600_000)
    model = ByteDecoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95))
    window = torch.arange(CONTEXT + 1)
    status = StatusLine(steps, model)
    for _ in range(steps):
        start = torch.randint(0, len(stream) - CONTEXT - 1, (BATCH, 1))
        chunk = stream[start + window]
        loss = F.cross_entropy(model(chunk[:, :-1]).flatten(0, 1), chunk[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        status.advance(loss)


if __name__ == "__main__":
    main()
