"""Learning-rate schedulers made after the optimizer, and after its first step: they wrap `optimizer.step` by `__func__`.

A warm-up, then one-cycle, then SWA with its own schedule; the order of the two step calls is checked by torch.
"""

import argparse
import warnings

import torch
from torch import nn
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingWarmRestarts, LambdaLR, OneCycleLR, SequentialLR
from torch.optim.swa_utils import SWALR, AveragedModel
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("error", message="Detected call of `lr_scheduler.step")
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=600)
args = parser.parse_args()
torch.manual_seed(0)
x = torch.randn(3000, 40)
loader = DataLoader(TensorDataset(x, x.abs().sum(1, keepdim=True) / 10), 50, shuffle=True)
model = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
third = max(2, args.steps // 3)


def phase(scheduler, num, averaged=None):
    done = 0
    while done < num:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            scheduler.step()
            if averaged is not None:
                averaged.update_parameters(model)
            done += 1
            if done >= num:
                break
    print(f"{type(scheduler).__name__}: loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}", flush=True)


warm = LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))
phase(SequentialLR(optimizer, [warm, CosineAnnealingWarmRestarts(optimizer, 50)], milestones=[20]), third)
phase(OneCycleLR(optimizer, max_lr=0.05, total_steps=third), third)
ConstantLR(optimizer, factor=0.5, total_iters=5)
phase(SWALR(optimizer, swa_lr=0.01, anneal_epochs=10), third, AveragedModel(model))
