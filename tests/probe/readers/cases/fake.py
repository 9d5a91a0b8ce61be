"""A forward of fake tensors."""

from __future__ import annotations

from typing import Any

from program import Found, first
from torch import nn


def read(model: nn.Module, inputs: Any) -> Found:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        out = model(inputs)
    return list(first(out).shape), str(first(out))
