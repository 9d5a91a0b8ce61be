"""What torch.compile counts of itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch


def counted(function: Callable[[], Any]) -> Any:
    """Return the result, torch.compile's own counts of graphs and breaks, and what it warned about."""
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    stats = {name: dict(counters[name]) for name in ("stats", "graph_break")}
    return [result, stats, [str(warning.message)[:60] for warning in caught]]
