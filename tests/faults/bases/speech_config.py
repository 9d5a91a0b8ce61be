"""Sound in frames, a dilated convolution stack, built from a configuration and driven by a closure."""

import functools

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 960
BATCH = 16

CONFIG = {
    "model": {"channels": 48, "dilations": (1, 2, 4, 8)},
    "optimizer": {"lr": 1e-3, "fused": True},
    "loader": {"shuffle": True, "drop_last": True},
}


class Sounds(Dataset):
    def __init__(self, num):
        self.sounds = torch.randn(num, 1, 1024).cumsum(-1) / 32

    def __len__(self):
        return self.sounds.shape[0]

    def __getitem__(self, index):
        sound = self.sounds[index]
        return {"past": sound[:, :-1], "next": sound[:, 1:]}


class Dilated(nn.Module):
    def __init__(self, channels, dilations):
        super().__init__()
        self.enter = nn.Conv1d(1, channels, 1)
        self.layers = nn.ModuleList(nn.Conv1d(channels, channels, 3, padding=d, dilation=d) for d in dilations)
        self.leave = nn.Conv1d(channels, 1, 1)

    def forward(self, past):
        hidden = self.enter(past)
        for layer in self.layers:
            hidden = hidden + torch.tanh(layer(hidden))
        return self.leave(hidden)


def build(config):
    model = Dilated(**config["model"])
    return model, torch.optim.AdamW(model.parameters(), **config["optimizer"])


def make_step(model, optimizer, criterion):
    def train_step(batch):
        predicted = model(batch["past"])
        loss = criterion(predicted, batch["next"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return train_step


def run(config):
    model, optimizer = build(config)
    train_step = make_step(model, optimizer, nn.MSELoss())
    make_loader = functools.partial(DataLoader, batch_size=BATCH, **config["loader"])
    sounds = make_loader(Sounds(NUM_SAMPLES))
    for epoch in range(1000):
        total = sum(train_step(batch) for batch in sounds)
        print(f"epoch {epoch}: {total.item() / len(sounds):.4f}")


if __name__ == "__main__":
    run(CONFIG)
