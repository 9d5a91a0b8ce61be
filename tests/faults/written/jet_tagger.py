"""Particle jet tagging with a wide MLP; the run can be resumed after preemption."""
import argparse
import os
import tempfile

import torch
from torch import nn
from torch.nn import functional as F


def simulate_jets(n, features=64, classes=10, seed=0):
    gen = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (n,), generator=gen)
    centres = torch.randn(classes, features, generator=gen)
    x = centres[labels] * 0.6 + torch.randn(n, features, generator=gen)
    return torch.sinh(x).clamp(-8, 8), labels


class JetTagger(nn.Module):
    def __init__(self, features, width, classes):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(features, width), nn.Linear(width, width), nn.Linear(width, width)])
        self.norm = nn.BatchNorm1d(features)
        self.tag = nn.Linear(width, classes)

    def forward(self, x):
        x = self.norm(x)
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.05)
        return self.tag(x)


class Saver:
    def __init__(self, folder, every, **objects):
        self.path = os.path.join(folder, "resume.pt")
        self.every = every
        self.objects = objects

    def resume(self):
        if not os.path.exists(self.path):
            return 0
        payload = torch.load(self.path)
        for name, item in self.objects.items():
            item.load_state_dict(payload[name])
        return payload["step"]

    def tick(self, step):
        if step % self.every == 0:
            payload = {name: item.state_dict() for name, item in self.objects.items()}
            payload["step"] = step
            torch.save(payload, self.path + ".tmp")
            os.replace(self.path + ".tmp", self.path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=0.0005)
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--output", default=None)
    args = parser.parse_args()

    torch.manual_seed(40)
    x, y = simulate_jets(52_000)
    x, x_test = x[:50_000], x[50_000:]
    y, y_test = y[:50_000], y[50_000:]
    model = JetTagger(x.shape[1], args.width, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    output = args.output or tempfile.mkdtemp(prefix="jets_")
    saver = Saver(output, args.save_every, model=model, optimizer=optimizer, scheduler=scheduler)

    start = saver.resume()
    for step in range(start + 1, args.steps + 1):
        rows = torch.randint(0, len(x), (args.batch_size,))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        saver.tick(step)
        if step % 500 == 0:
            model.eval()
            with torch.no_grad():
                accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
            model.train()
            print(f"step {step} loss {loss.item():.4f} test accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
