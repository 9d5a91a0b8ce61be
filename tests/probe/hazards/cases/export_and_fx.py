"""A trained model is exported, and traced by fx."""

from __future__ import annotations

from typing import Any

import torch
from program import trained


def case() -> Any:
    model = trained()
    graph = torch.fx.symbolic_trace(model)
    exported = torch.export.export(model, (torch.ones(2, 8),))
    return [
        [node.name for node in graph.graph.nodes],
        [node.name for node in exported.graph.nodes],
        exported.module()(torch.ones(2, 8)).sum().item().hex(),
    ]
