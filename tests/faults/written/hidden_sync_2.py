"""Intent classifier over padded utterances: recurrent encoder with attention pooling."""
import argparse
import collections

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

RARE_INTENT, INTENTS, VOCAB = 6, 7, 700


def utterances(n, vocab, longest):
    gen = torch.Generator().manual_seed(31)
    intent = torch.randint(0, INTENTS, (n,), generator=gen)
    tokens = torch.randint(1, vocab, (n, longest), generator=gen)
    cue = 1 + intent[:, None] * 10 + torch.randint(0, 10, (n, longest), generator=gen)
    tokens = torch.where(torch.rand(n, longest, generator=gen) < 0.2, cue, tokens)
    lengths = torch.randint(longest // 2, longest + 1, (n,), generator=gen)
    tokens = tokens * (torch.arange(longest) < lengths[:, None])
    return tokens, lengths, intent


class AttentionPool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, states, valid):
        weight = self.score(states).squeeze(-1).masked_fill(~valid, -1e9).softmax(1)
        return torch.einsum("bt,btd->bd", weight, states)


class IntentNet(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.pool = AttentionPool(dim)
        self.classify = nn.Linear(dim, INTENTS)

    def forward(self, tokens, lengths):
        longest = int(lengths.max())
        tokens = tokens[:, :longest]
        states, _ = self.encoder(self.embed(tokens))
        valid = torch.arange(longest) < lengths[:, None]
        return self.classify(self.pool(states, valid))


def mined_loss(logits, intent):
    each = F.cross_entropy(logits, intent, reduction="none")
    above = (each > each.mean()).nonzero().squeeze(1)
    return each.mean() + 0.5 * each.index_select(0, above).sum() / len(each)


class DuplicateGuard:
    """Notices a sampler that hands out the same batch twice."""

    def __init__(self, shape):
        self.previous = torch.zeros(shape, dtype=torch.long)
        self.repeats = 0

    def check(self, tokens):
        if torch.equal(tokens, self.previous):
            self.repeats += 1
        self.previous = tokens


class GradientLimiter:
    def __init__(self, model, limit):
        self.parameters = list(model.parameters())
        self.limit = limit
        self.peak = torch.zeros(())

    def measure(self):
        norms = [torch.linalg.vector_norm(p.grad) for p in self.parameters]
        return torch.linalg.vector_norm(torch.stack(norms))

    def apply(self):
        norm, scale = self.measure(), 1.0
        while norm * scale > self.limit:
            scale *= 0.5
        for p in self.parameters:
            p.grad.mul_(scale)
        self.peak = max(self.peak, norm)


class Scoreboard:
    def __init__(self):
        self.recent = collections.deque(maxlen=200)
        self.by_intent = np.zeros(INTENTS, dtype=np.int64)
        self.rare_batches = 0

    def losses(self, loss):
        self.recent.append(loss.item())

    def predictions(self, logits):
        chosen = np.asarray(logits.detach().argmax(1))
        self.by_intent += np.bincount(chosen, minlength=INTENTS)

    def rare(self, intent):
        if (intent == RARE_INTENT).any():
            self.rare_batches += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--longest", type=int, default=28)
    parser.add_argument("--dim", type=int, default=96)
    args = parser.parse_args()

    torch.manual_seed(31)
    tokens, lengths, intent = utterances(9000, VOCAB, args.longest)
    model = IntentNet(VOCAB, args.dim)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    limiter = GradientLimiter(model, limit=1.0)
    guard = DuplicateGuard((args.batch, args.longest))
    board = Scoreboard()
    for step in range(1, args.steps + 1):
        rows = torch.randint(0, len(tokens), (args.batch,))
        batch, target = tokens[rows], intent[rows]
        guard.check(batch)
        board.rare(target)
        logits = model(batch, lengths[rows])
        loss = mined_loss(logits, target)
        optimizer.zero_grad()
        loss.backward()
        limiter.apply()
        optimizer.step()
        board.losses(loss)
        board.predictions(logits)
        if step % 100 == 0:
            mean = sum(board.recent) / len(board.recent)
            print(f"step {step} loss {mean:.4f} rare {board.rare_batches} repeats {guard.repeats}", flush=True)


if __name__ == "__main__":
    main()
