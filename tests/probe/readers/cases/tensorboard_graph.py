"""SummaryWriter.add_graph."""

from __future__ import annotations

from typing import Any

from program import FOLDER, Found
from torch import nn


def read(model: nn.Module, inputs: Any) -> Found:
    from torch.utils.tensorboard import SummaryWriter
    from torch.utils.tensorboard._pytorch_graph import graph

    with SummaryWriter(str(FOLDER / "graph")) as writer:
        writer.add_graph(model, inputs)
    return [node.name for node in graph(model, inputs)[0].node], None
