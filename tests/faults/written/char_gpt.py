"""A small decoder-only language model over a synthetic character stream."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    vocab: int = 64
    block: int = 64
    n_layer: int = 3
    n_head: int = 4
    n_embd: int = 96
    batch: int = 24
    lr: float = 6e-4
    warmup: int = 200
    max_iters: int = 50_000
    log_every: int = 50
    grad_clip: float = 1.0


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.out = nn.Linear(cfg.n_embd, cfg.n_embd)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q = q.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
        k = k.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
        v = v.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(cfg.n_embd), nn.LayerNorm(cfg.n_embd)
        self.attn = Attention(cfg)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.n_embd, 4 * cfg.n_embd), nn.GELU(), nn.Linear(4 * cfg.n_embd, cfg.n_embd)
        )

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class CharGPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.n_embd)
        self.pos = nn.Parameter(torch.zeros(1, cfg.block, cfg.n_embd))
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.n_layer)])
        self.norm = nn.LayerNorm(cfg.n_embd)
        self.head = nn.Linear(cfg.n_embd, cfg.vocab, bias=False)

    def forward(self, idx, targets):
        x = self.tok(idx) + self.pos[:, : idx.shape[1]]
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def synth_corpus(vocab, length, seed=5):
    gen = torch.Generator().manual_seed(seed)
    motif = torch.randint(0, vocab, (400, 12), generator=gen)
    picks = torch.randint(0, 400, (length // 12,), generator=gen)
    return motif[picks].flatten()


def get_batch(stream, cfg, offsets):
    start = torch.randint(0, len(stream) - cfg.block - 1, (cfg.batch, 1))
    window = stream[start + offsets]
    return window[:, :-1], window[:, 1:]


def lr_at(step, cfg):
    if step < cfg.warmup:
        return (step + 1) / cfg.warmup
    progress = (step - cfg.warmup) / (cfg.max_iters - cfg.warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


def main():
    cfg = GPTConfig()
    torch.manual_seed(1337)
    stream = synth_corpus(cfg.vocab, 600_000)
    offsets = torch.arange(cfg.block + 1)
    model = CharGPT(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.95), fused=True)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: lr_at(s, cfg))
    for it in range(cfg.max_iters):
        xb, yb = get_batch(stream, cfg, offsets)
        loss = model(xb, yb)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), cfg.grad_clip)
        opt.step()
        sched.step()
        if it % cfg.log_every == 0:
            print(f"iter {it} loss {loss.item():.4f} lr {sched.get_last_lr()[0]:.2e}", flush=True)


if __name__ == "__main__":
    main()
