"""Patch classifier with hard-example weighting and several running reports."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Args:
    images: int = 6000
    classes: int = 8
    size: int = 24
    batch: int = 64
    lr: float = 0.02
    clip: float = 2.0
    easy: float = 0.02
    epochs: int = 300
    show_every: int = 40


def make_patches(args):
    gen = torch.Generator().manual_seed(12)
    labels = torch.randint(0, args.classes, (args.images,), generator=gen)
    prototypes = torch.randn(args.classes, 3, args.size, args.size, generator=gen)
    noise = torch.randn(args.images, 3, args.size, args.size, generator=gen)
    return 0.35 * prototypes[labels] + noise, labels


class PatchNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.body = nn.Sequential(
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        )
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        features = self.body(F.relu(self.stem(x))).mean((2, 3))
        logits = self.head(features)
        assert torch.isfinite(logits).all(), "the network produced a non-finite score"
        return logits


def hard_example_loss(logits, labels, easy):
    per_image = F.cross_entropy(logits, labels, reduction="none")
    hard = per_image[per_image > easy]
    return hard.sum() / len(per_image)


def clip_gradients(model, limit):
    total = nn.utils.clip_grad_norm_(model.parameters(), limit)
    return float(total)


class RunningMean:
    def __init__(self, momentum=0.98):
        self.momentum, self.value = momentum, 0.0

    def add(self, tensor):
        self.value = self.momentum * self.value + (1 - self.momentum) * tensor.item()


class BestLoss:
    def __init__(self):
        self.best = torch.tensor(float("inf"))
        self.improvements = 0

    def see(self, loss):
        if loss < self.best:
            self.best = loss
            self.improvements += 1


class PredictionReport:
    def __init__(self, classes):
        self.classes = classes
        self.histogram = [0] * classes
        self.confusion = np.zeros(classes * classes, dtype=np.int64)

    def count(self, predicted):
        for c in predicted.tolist():
            self.histogram[c] += 1

    def confuse(self, predicted, labels):
        cells = (labels * self.classes + predicted).cpu().numpy()
        self.confusion += np.bincount(cells, minlength=self.classes**2)


class StatusLine:
    def __init__(self):
        self.text = ""

    def update(self, step, logits):
        p = logits.softmax(1)
        entropy = -(p * p.clamp_min(1e-9).log()).sum(1).mean()
        self.text = f"step {step} entropy {entropy:.3f}"


def main():
    args = Args()
    torch.manual_seed(12)
    images, labels = make_patches(args)
    model = PatchNet(args.classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    average, best, report, status = RunningMean(), BestLoss(), PredictionReport(args.classes), StatusLine()
    norm_sum, step = 0.0, 0
    for epoch in range(args.epochs):
        for rows in torch.randperm(args.images).split(args.batch):
            y = labels[rows]
            logits = model(images[rows])
            loss = hard_example_loss(logits, y, args.easy)
            optimizer.zero_grad()
            loss.backward()
            norm_sum += clip_gradients(model, args.clip)
            optimizer.step()

            scores = logits.detach()
            predicted = scores.argmax(1)
            average.add(loss)
            best.see(loss.detach())
            report.count(predicted)
            report.confuse(predicted, y)
            status.update(step, scores)
            step += 1
            if step % args.show_every == 0:
                print(status.text, f"loss {average.value:.4f} norm {norm_sum / step:.3f} "
                      f"improved {best.improvements} times, classes used {sum(map(bool, report.histogram))}", flush=True)


if __name__ == "__main__":
    main()
