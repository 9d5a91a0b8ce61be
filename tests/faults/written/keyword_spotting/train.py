"""Train a convolutional keyword spotter."""
import argparse
import os
import tempfile
import time

import torch
from torch import nn

from data import make_loaders


class KeywordNet(nn.Module):
    def __init__(self, n_words, width=24):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.classifier = nn.Linear(64, n_words)

    def forward(self, x):
        return self.classifier(self.features(x))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.train_loader, self.val_loader = make_loaders(args.words, args.batch_size)
        self.model = KeywordNet(args.words)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=1e-4
        )
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, milestones=[20, 40])
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
        self.checkpoint = os.path.join(tempfile.mkdtemp(prefix="kws_"), "last.pt")

    def run_epoch(self, epoch):
        self.model.train()
        for step, (spec, word) in enumerate(self.train_loader):
            loss = self.criterion(self.model(spec), word)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        self.scheduler.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hits = torch.zeros((), dtype=torch.long)
        for spec, word in self.val_loader:
            hits += (self.model(spec).argmax(1) == word).sum()
        return hits.item() / len(self.val_loader.dataset)

    def fit(self):
        for epoch in range(self.args.epochs):
            begin = time.time()
            self.run_epoch(epoch)
            accuracy = self.validate()
            torch.save(self.model.state_dict(), self.checkpoint)
            print(f"epoch {epoch} accuracy {accuracy:.3f} took {time.time() - begin:.1f}s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--lr", type=float, default=0.02)
    torch.manual_seed(4)
    Trainer(parser.parse_args()).fit()
