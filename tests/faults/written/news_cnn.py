"""Headline topic classifier: convolutions over word embeddings."""
import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

TOPICS = ["markets", "sport", "science", "weather", "culture"]


class Headlines(Dataset):
    def __init__(self, n, vocab, seed, low=14, high=36):
        rng = random.Random(seed)
        per_topic = vocab // (2 * len(TOPICS))
        self.items = []
        for _ in range(n):
            topic = rng.randrange(len(TOPICS))
            words = []
            for _ in range(rng.randint(low, high)):
                if rng.random() < 0.25:
                    words.append(1 + topic * per_topic + rng.randrange(per_topic))
                else:
                    words.append(rng.randrange(vocab // 2, vocab))
            self.items.append((torch.tensor(words), topic))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def pad_batch(items):
    words, topics = zip(*items)
    return nn.utils.rnn.pad_sequence(list(words), batch_first=True), torch.tensor(topics)


class HeadlineCNN(nn.Module):
    def __init__(self, vocab, dim=96, filters=64, widths=(2, 3, 4)):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(dim, filters, w, padding=w // 2) for w in widths])
        self.deep = nn.Conv1d(filters * len(widths), filters, 3, padding=1)
        self.drop = nn.Dropout(0.2)
        self.topic = nn.Linear(filters, len(TOPICS))

    def forward(self, words):
        x = self.embed(words).transpose(1, 2)
        length = x.shape[-1]
        maps = [F.relu(conv(x))[..., :length] for conv in self.convs]
        deep = F.relu(self.deep(torch.cat(maps, dim=1)))
        return self.topic(self.drop(deep.amax(-1)))


def accuracy(model, words, topics):
    return (model(words).argmax(dim=1) == topics).float().mean().detach()


def train_step(model, optimizer, words, topics):
    loss = F.cross_entropy(model(words), topics)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--vocab", type=int, default=3000)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(70)
    loader = DataLoader(
        Headlines(6400, args.vocab, seed=70), batch_size=args.batch_size, shuffle=True, collate_fn=pad_batch
    )
    model = HeadlineCNN(args.vocab)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.5)
    for epoch in range(args.epochs):
        model.train()
        losses, scores = [], []
        for words, topics in loader:
            losses.append(train_step(model, optimizer, words, topics))
            scores.append(accuracy(model, words, topics))
        scheduler.step()
        loss, score = torch.stack(losses).mean().item(), torch.stack(scores).mean().item()
        print(f"epoch {epoch} loss {loss:.4f} accuracy {score:.3f}", flush=True)


if __name__ == "__main__":
    main()
