"""torch.jit.script."""

from __future__ import annotations

from typing import Any

import torch
from program import Found
from torch import nn


def read(model: nn.Module, inputs: Any) -> Found:
    scripted = torch.jit.script(model)
    return [node.kind() for node in scripted.inlined_graph.nodes()], scripted.code
