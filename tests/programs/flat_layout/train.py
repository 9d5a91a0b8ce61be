"""Modules called data, model, utils and conf beside the script, imported by their short names; an endless data set.

Anything else on the path that answers to one of these names breaks it. Shadows `compile`, `input` and `iter`.
"""

import sys

import conf
import torch
from data import Sums
from model import Model
from utils import set_lr

steps = int(sys.argv[sys.argv.index("--steps") + 1]) if "--steps" in sys.argv else conf.STEPS
compile = False
model = Model()
optimizer = torch.optim.Adam(model.parameters())
loader = torch.utils.data.DataLoader(Sums(), batch_size=conf.BATCH_SIZE)
for iter, (input, target) in enumerate(loader):
    set_lr(optimizer, iter)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(input), target)
    loss.backward()
    optimizer.step()
    if iter % 50 == 0:
        print(iter, round(loss.item(), 4), flush=True)
    if iter + 1 >= steps:
        break
