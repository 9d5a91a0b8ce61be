"""Predict crop yield from seasonal weather with hooks run at chosen intervals."""
import functools

import torch
from torch import nn

DAYS, VARIABLES, FIELDS_TRAIN, FIELDS_TEST = 60, 10, 9_000, 2_048


def every(interval):
    """Run a hook only on steps that are a multiple of `interval`."""

    def decorate(hook):
        @functools.wraps(hook)
        def wrapped(self, step, *args):
            return hook(self, step, *args) if step % interval == 0 else None

        return wrapped

    return decorate


def seasons(count, seed):
    gen = torch.Generator().manual_seed(seed)
    weather = torch.randn(count, DAYS, VARIABLES, generator=gen).cumsum(dim=1) / 6
    rain, heat = weather[:, :, 0], weather[:, :, 1]
    harvest = 2 * torch.tanh(rain[:, 20:40].mean(dim=1)) - heat[:, 35:].clamp(min=0).mean(dim=1)
    return weather, harvest + 0.1 * torch.randn(count, generator=gen)


class YieldNet(nn.Module):
    def __init__(self, dim=72, depth=2):
        super().__init__()
        self.enter = nn.Linear(VARIABLES, dim)
        self.day = nn.Parameter(0.02 * torch.randn(DAYS, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, dim_feedforward=144, dropout=0.05, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.leave = nn.Linear(dim, 1)

    def forward(self, weather):
        return self.leave(self.encoder(self.enter(weather) + self.day).mean(dim=1)).squeeze(1)


class Campaign:
    def __init__(self, batch=32, epochs=300):
        self.batch, self.epochs = batch, epochs
        self.train_set, self.test_set = seasons(FIELDS_TRAIN, 1), seasons(FIELDS_TEST, 2)
        self.model = YieldNet()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.criterion = nn.MSELoss()
        self.best = float("inf")

    @every(40)
    def report(self, step, loss):
        print(f"step {step} loss {loss.item():.4f}", flush=True)

    @every(20)
    @torch.no_grad()
    def validate(self, step):
        self.model.eval()
        weather, harvest = self.test_set
        squared = torch.zeros(())
        for part, truth in zip(weather.split(self.batch), harvest.split(self.batch)):
            squared += ((self.model(part) - truth) ** 2).sum()
        self.model.train()
        error = (squared / len(harvest)).sqrt().item()
        if error < self.best:
            self.best = error
            print(f"step {step} best error {error:.4f}", flush=True)

    def run(self):
        weather, harvest = self.train_set
        step = 0
        for _ in range(self.epochs):
            for pick in torch.randperm(FIELDS_TRAIN).split(self.batch):
                step += 1
                loss = self.criterion(self.model(weather[pick]), harvest[pick])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.report(step, loss)
                self.validate(step)


if __name__ == "__main__":
    torch.manual_seed(73)
    Campaign().run()
