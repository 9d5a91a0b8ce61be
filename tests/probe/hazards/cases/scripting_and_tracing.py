"""A trained model is scripted, traced and frozen."""

from __future__ import annotations

from typing import Any

import torch
from program import trained


def case() -> Any:
    model = trained()
    scripted = torch.jit.script(model)
    traced = torch.jit.trace(model, torch.ones(2, 8))
    frozen = torch.jit.freeze(scripted.eval())
    return [thing(torch.ones(2, 8)).sum().item().hex() for thing in (scripted, traced, frozen)]
