"""Assign patents to fields with a convolutional text model."""
import argparse

import torch
from torch import nn

from data import FIELDS, patent_loader


class FieldTagger(nn.Module):
    def __init__(self, pieces, dim=64, width=96):
        super().__init__()
        self.embed = nn.Embedding(pieces, dim, padding_idx=0)
        self.narrow = nn.Conv1d(dim, dim, 3, padding=1)
        self.wide = nn.Conv1d(dim, width, 3, padding=1)
        self.last = nn.Conv1d(width, width, 3, padding=1)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(width, FIELDS)

    def forward(self, pieces):
        x = self.embed(pieces).transpose(1, 2)
        x = torch.relu(self.narrow(x))
        x = torch.relu(self.wide(x))
        x = torch.relu(self.last(self.drop(x)))
        return self.out(x.amax(dim=2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--abstracts", type=int, default=4_000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=200)
    args = parser.parse_args()

    torch.manual_seed(3)
    loader, pieces = patent_loader(args.abstracts, args.batch_size)
    model = FieldTagger(pieces)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.02)
    for epoch in range(args.epochs):
        right = torch.zeros((), dtype=torch.long)
        for step, (text, field) in enumerate(loader):
            logits = model(text)
            loss = criterion(logits, field)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (logits.argmax(dim=1) == field).sum()
            if step % 25 == 0:
                print(f"epoch {epoch} step {step}/{len(loader)} loss {loss.item():.4f}", flush=True)
        print(f"epoch {epoch} accuracy {right.item() / (len(loader) * args.batch_size):.3f}", flush=True)


if __name__ == "__main__":
    main()
