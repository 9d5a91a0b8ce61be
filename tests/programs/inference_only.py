"""Inference only: a forward loop under `no_grad` with a latency print, no optimizer, no backward."""

import argparse
import statistics
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--requests", "--steps", type=int, default=150)
parser.add_argument("--batch-size", type=int, default=8)
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
    nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
    nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(128), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100),
)  # fmt: skip
model.eval()
latencies = []
with torch.no_grad():
    for request in range(args.requests):
        image = torch.randn(args.batch_size, 3, 128, 128)
        start = time.perf_counter()
        top = model(image).softmax(1).topk(5)
        latencies.append(time.perf_counter() - start)
        if request % 25 == 0:
            print(f"request {request} class {top.indices[0, 0].item()} {1000 * latencies[-1]:.1f} ms", flush=True)
print(f"p50 {1000 * statistics.median(latencies):.2f} ms, p99 {1000 * sorted(latencies)[int(0.99 * len(latencies))]:.2f} ms, {args.batch_size / statistics.mean(latencies):.1f} images/s")
