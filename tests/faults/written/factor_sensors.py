"""Plant-wide quality prediction: every sensor has its own learned response curve."""
import math

import torch
from torch import nn
from torch.nn import functional as F

SENSORS = 400
RESPONSE = 16
ROWS = 20_000
BATCH = 192
EPOCHS = 200


class SensorResponse(nn.Module):
    """Scale and offset of one sensor; kept apart so that single sensors can be frozen or replaced."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(RESPONSE) * 0.5)
        self.offset = nn.Parameter(torch.zeros(RESPONSE))


class QualityModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.sensors = nn.ModuleList([SensorResponse() for _ in range(SENSORS)])
        self.collect = nn.Linear(SENSORS * RESPONSE, 96)
        self.readout = nn.Sequential(nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))

    def forward(self, readings):
        scale = torch.stack([s.scale for s in self.sensors])
        offset = torch.stack([s.offset for s in self.sensors])
        curves = torch.tanh(torch.addcmul(offset, readings.unsqueeze(-1), scale))
        return self.readout(self.collect(curves.flatten(1))).squeeze(-1)


def plant_history():
    trend = torch.randn(ROWS, 12)
    loading = torch.randn(12, SENSORS) / math.sqrt(12)
    readings = trend @ loading + 0.3 * torch.randn(ROWS, SENSORS)
    quality = torch.tanh(trend[:, 0]) + 0.5 * trend[:, 1] * trend[:, 2] + 0.1 * torch.randn(ROWS)
    return readings, quality


def split_decay(model):
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]


def make_optimizer(model, lr):
    return torch.optim.AdamW(split_decay(model), lr=lr, foreach=False)


def run():
    torch.manual_seed(3)
    readings, quality = plant_history()
    cut = ROWS - 1000
    model = QualityModel()
    optimizer = make_optimizer(model, lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(EPOCHS):
        model.train()
        losses = []
        for rows in torch.randperm(cut).split(BATCH):
            predicted = model(readings[rows])
            loss = F.huber_loss(predicted, quality[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        scheduler.step()
        model.eval()
        with torch.inference_mode():
            held_out = F.huber_loss(model(readings[cut:]), quality[cut:]).item()
        print(f"epoch {epoch} train {torch.stack(losses).mean().item():.4f} held out {held_out:.4f}", flush=True)


if __name__ == "__main__":
    run()
