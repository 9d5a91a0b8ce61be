"""CUDA graphs behind a compiled call: whether they are replayed, and outputs that outlive the next replay."""

from __future__ import annotations

import functools
from typing import Any

from hotloop.optimize.program.containers import map_tensors

GRAPH_MODES = ("reduce-overhead", "max-autotune")
"""Modes of torch.compile that use CUDA graphs on a device."""


class GraphReplays:
    """Counts replays, and copies what leaves the graphs' memory."""

    def __init__(self) -> None:
        self.num_replays = 0
        self.on_device = False
        """The model lives on a device that has graphs."""

    def watch(self, module: Any) -> None:
        """Count from here on: that code was compiled does not say that a graph was captured of it."""
        import torch

        self.on_device = any(parameter.is_cuda for parameter in module.parameters())
        original = torch.cuda.CUDAGraph.replay

        @functools.wraps(original)
        def replay(graph: Any) -> Any:
            self.num_replays += 1
            return original(graph)

        torch.cuda.CUDAGraph.replay = replay

    def kept(self, output: Any) -> Any:
        """Return an output that the next replay does not overwrite.

        A program may keep a loss for the end of the epoch. The graph would write the next step's over it, and torch
        raises when the old one is read, long after the trial.
        """
        return map_tensors(output, lambda tensor: tensor.clone() if tensor.is_cuda else tensor)
