"""Deep mixture of experts for a synthetic regression task, with a routing log."""
import logging
import os
import tempfile
from logging.handlers import RotatingFileHandler

import torch
from torch import nn

LAYERS, EXPERTS, DIM, INPUTS = 8, 16, 48, 20
ROWS, BATCH = 20_000, 192


def routing_logger():
    folder = tempfile.mkdtemp(prefix="moe_")
    handler = RotatingFileHandler(os.path.join(folder, "routing.log"), maxBytes=16_000_000, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)-7s %(message)s"))
    logger = logging.getLogger("moe.routing")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return logger


class ExpertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.gate = nn.Linear(DIM, EXPERTS)
        self.weight = nn.Parameter(torch.randn(EXPERTS, DIM, DIM) / DIM**0.5)
        self.bias = nn.Parameter(torch.zeros(EXPERTS, 1, DIM))

    def forward(self, x):
        h = self.norm(x)
        share = self.gate(h).softmax(dim=-1)
        self.usage = share.detach().mean(dim=0)
        out = torch.relu(torch.matmul(h, self.weight) + self.bias)
        return x + torch.einsum("ebd,be->bd", out, share)


class ExpertNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(INPUTS, DIM)
        self.layers = nn.ModuleList([ExpertLayer() for _ in range(LAYERS)])
        self.leave = nn.Linear(DIM, 1)

    def forward(self, x):
        x = self.enter(x)
        for layer in self.layers:
            x = layer(x)
        return self.leave(x).squeeze(1)


class RoutingTable:
    """Load of each expert in each layer, one line per expert."""

    def __init__(self, net, logger):
        self.net, self.logger = net, logger

    def write(self, step, loss):
        self.logger.info("step %d loss %.5f", step, loss)
        self.logger.info("%5s | %6s | %8s | %8s | %10s | %-16s", "layer", "expert", "usage", "gap", "gradient", "load")
        for depth, layer in enumerate(self.net.layers):
            usage = layer.usage.tolist()
            gradient = layer.weight.grad.flatten(1).norm(dim=1).tolist()
            for expert in range(EXPERTS):
                bar = "#" * min(16, round(usage[expert] * 64))
                gap = usage[expert] - 1 / EXPERTS
                self.logger.info("%5d | %6d | %8.4f | %+8.4f | %10.3e | %-16s", depth, expert, usage[expert], gap,
                                 gradient[expert], bar)


def main():
    torch.manual_seed(55)
    x = torch.randn(ROWS, INPUTS)
    y = torch.where(x[:, 0] > 0, torch.sin(2 * x[:, 1]) + x[:, 2], x[:, 3] * x[:, 4]) + 0.05 * torch.randn(ROWS)
    net = ExpertNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    table = RoutingTable(net, routing_logger())
    step = 0
    for epoch in range(800):
        for pick in torch.randperm(ROWS).split(BATCH):
            loss = nn.functional.mse_loss(net(x[pick]), y[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            table.write(step, loss.item())
            step += 1
        print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
