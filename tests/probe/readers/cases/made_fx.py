"""make_fx."""

from __future__ import annotations

from typing import Any

from program import Found
from torch import nn


def read(model: nn.Module, inputs: Any) -> Found:
    from torch.fx.experimental.proxy_tensor import make_fx

    makers = (make_fx(model), make_fx(model, tracing_mode="symbolic", _allow_non_fake_inputs=True))
    return [[node.name for node in maker(inputs).graph.nodes] for maker in makers], None
