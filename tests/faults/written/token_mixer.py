"""Sequence classifier that mixes attention with a gated per-token layer."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class GatedTokenLayer(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.gate = nn.Linear(dim, inner)
        self.value = nn.Linear(dim, inner)
        self.output = nn.Linear(inner, dim)

    def forward(self, x):
        outputs = []
        for t in range(x.size(1)):
            token = self.norm(x[:, t])
            hidden = torch.sigmoid(self.gate(token)) * self.value(token)
            outputs.append(self.output(hidden))
        return x + torch.stack(outputs, dim=1)


class AttentionLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)

    def forward(self, x):
        h = self.norm(x)
        return x + self.attention(h, h, h, need_weights=False)[0]


class Mixer(nn.Module):
    def __init__(self, vocab, length, dim, depth, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Parameter(torch.zeros(length, dim))
        self.attention = nn.ModuleList([AttentionLayer(dim, 4) for _ in range(depth)])
        self.feed = nn.ModuleList([nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
                                   for _ in range(depth)])
        self.gated = GatedTokenLayer(dim, dim)
        self.classify = nn.Linear(dim, classes)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position
        for attention, feed in zip(self.attention, self.feed):
            x = attention(x)
            x = x + feed(x)
        x = self.gated(x)
        return self.classify(x.mean(1))


def make_documents(n, vocab, length, classes):
    """The class is the group of tokens that occurs most often."""
    label = torch.randint(0, classes, (n,))
    tokens = torch.randint(0, vocab, (n, length))
    group = vocab // classes
    biased = label[:, None] * group + torch.randint(0, group, (n, length))
    return torch.where(torch.rand(n, length) < 0.2, biased, tokens), label


def learning_rate(step, warmup=300):
    return min((step + 1) / warmup, (warmup / (step + 1)) ** 0.5)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=40_000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--vocab", type=int, default=640)
    parser.add_argument("--dim", type=int, default=96)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    return parser.parse_args()


def main():
    cfg = parse()
    torch.manual_seed(0)
    documents, labels = make_documents(20_000, cfg.vocab, cfg.length, classes=8)
    model = Mixer(cfg.vocab, cfg.length, cfg.dim, cfg.depth, classes=8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate)
    model.train()
    for iteration in range(cfg.iterations):
        pick = torch.randint(0, len(documents), (cfg.batch,))
        logits = model(documents[pick])
        loss = F.cross_entropy(logits, labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if iteration % 100 == 0:
            accuracy = (logits.argmax(1) == labels[pick]).float().mean()
            print(f"{iteration:6d} loss {loss.item():.4f} accuracy {accuracy.item():.2f}", flush=True)


if __name__ == "__main__":
    main()
