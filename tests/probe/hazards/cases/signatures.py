"""Signatures of what is hooked are torch's own."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from program import trained
from torch import nn


def case() -> Any:
    model = trained()
    return [
        str(inspect.signature(thing))
        for thing in (
            model.forward,
            torch.optim.AdamW,
            torch.optim.SGD,
            torch.optim.Optimizer,
            torch.utils.data.DataLoader,
            torch.save,
            torch.autograd.backward,
            torch.autograd.grad,
            torch.compile,
            torch.distributed.all_reduce,
            nn.Module.__call__,
            torch.Tensor.backward,
        )
    ]
