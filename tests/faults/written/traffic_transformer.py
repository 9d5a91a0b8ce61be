"""Road traffic speed forecasting with a small transformer, settings in a nested dict."""
import json
import sys

import torch
from torch import nn

DEFAULTS = {
    "data": {"roads": 24, "minutes": 20_000, "history": 36, "ahead": 6},
    "model": {"dim": 64, "heads": 4, "layers": 3},
    "optim": {"lr": 7e-4, "batch": 24, "steps": 80_000, "clip": 1.0},
    "runtime": {"seed": 2, "report": 100, "detect_anomaly": True},
}


def load_settings(argv):
    settings = json.loads(json.dumps(DEFAULTS))
    for item in argv:
        key, value = item.split("=", 1)
        section, name = key.split(".")
        settings[section][name] = json.loads(value)
    return settings


def simulate_speeds(roads, minutes):
    t = torch.arange(minutes, dtype=torch.float32)
    rush = torch.sin(t / 1440 * 6.2832).unsqueeze(1)
    offsets = torch.rand(roads)
    wave = torch.sin(t.unsqueeze(1) / 30 + offsets * 6.2832)
    return 0.6 * rush + 0.3 * wave + 0.1 * torch.randn(minutes, roads)


class GatedFusion(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.left, self.right = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, context):
        gate = torch.sigmoid(self.left(x) + self.right(context))
        return self.norm(gate * x + (1 - gate) * context)


class SpeedModel(nn.Module):
    def __init__(self, data, dim, heads, layers):
        super().__init__()
        self.inputs = nn.Linear(data["roads"], dim)
        self.time = nn.Parameter(torch.randn(data["history"], dim) * 0.02)
        self.attend = nn.ModuleList([nn.MultiheadAttention(dim, heads, batch_first=True) for _ in range(layers)])
        self.fuse = nn.ModuleList([GatedFusion(dim) for _ in range(layers)])
        self.feed = nn.ModuleList(
            [nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
             for _ in range(layers)]
        )
        self.outputs = nn.Linear(dim, data["ahead"] * data["roads"])
        self.shape = (data["ahead"], data["roads"])

    def forward(self, history):
        x = self.inputs(history) + self.time
        for attend, fuse, feed in zip(self.attend, self.fuse, self.feed):
            context, _ = attend(x, x, x, need_weights=False)
            x = fuse(x, context)
            x = x + feed(x)
        return self.outputs(x[:, -1]).view(-1, *self.shape)


class Runner:
    def __init__(self, settings):
        self.cfg = settings
        runtime, data = settings["runtime"], settings["data"]
        torch.manual_seed(runtime["seed"])
        torch.autograd.set_detect_anomaly(runtime["detect_anomaly"])
        self.speeds = simulate_speeds(data["roads"], data["minutes"])
        self.model = SpeedModel(data, **settings["model"])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=settings["optim"]["lr"], fused=True)
        self.window = torch.arange(data["history"] + data["ahead"])

    def batch(self):
        last = self.cfg["data"]["minutes"] - len(self.window)
        start = torch.randint(0, last, (self.cfg["optim"]["batch"], 1))
        block = self.speeds[start + self.window]
        split = self.cfg["data"]["history"]
        return block[:, :split], block[:, split:]

    def run(self):
        optim = self.cfg["optim"]
        for step in range(optim["steps"]):
            history, target = self.batch()
            error = (self.model(history) - target).abs().mean()
            self.optimizer.zero_grad()
            error.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), optim["clip"])
            self.optimizer.step()
            if step % self.cfg["runtime"]["report"] == 0:
                print(f"step {step} mae {error.item():.4f}", flush=True)


if __name__ == "__main__":
    Runner(load_settings(sys.argv[1:])).run()
