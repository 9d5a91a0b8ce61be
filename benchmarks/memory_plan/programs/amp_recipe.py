"""Three wide linear layers, SGD, batches on the device, gradients kept and zeroed; with `--amp` once more, in fp16."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
parser.add_argument("--batch", type=int, default=512)
parser.add_argument("--width", type=int, default=4096)
parser.add_argument("--batches", type=int, default=50)
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"
inputs = [torch.randn(args.batch, args.width, device=device) for _ in range(args.batches)]
targets = [torch.randn(args.batch, args.width, device=device) for _ in range(args.batches)]
for is_half in (False, True)[: 1 + args.amp]:
    model = nn.Sequential(
        nn.Linear(args.width, args.width),
        nn.ReLU(),
        nn.Linear(args.width, args.width),
        nn.ReLU(),
        nn.Linear(args.width, args.width),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    scaler = torch.amp.GradScaler(device, enabled=is_half)
    # As in the recipe, the loss of the first training lives on in the first forward of the second: its graph holds the
    # parameters and gradients of the first model.
    for step in range(args.steps):
        with torch.autocast(device, torch.float16, enabled=is_half):
            output = model(inputs[step % args.batches])
            loss = nn.functional.mse_loss(output, targets[step % args.batches])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=False)
