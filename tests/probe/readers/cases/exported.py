"""torch.export.export."""

from __future__ import annotations

from typing import Any

import torch
from program import Found
from torch import nn


def read(model: nn.Module, inputs: Any) -> Found:
    program = torch.export.export(model, (inputs,), strict=False)
    return [node.name for node in program.graph.nodes], str(program.graph_signature)
