"""Hook point `backward`: `Tensor.backward` and `torch.autograd.backward` are one function; `autograd.grad` another."""

from __future__ import annotations

import functools
from typing import Any

from hotloop.probe.events import Kind, begin, end
from hotloop.probe.probe import Probe

BACKWARD, GRAD = 0, 1
"""Slots."""


def install(probe: Probe) -> None:
    """Patch the two functions where `Tensor.backward` and programs look them up: on `torch.autograd`."""
    import torch

    torch.autograd.backward = _timed(probe, torch.autograd.backward, BACKWARD)
    torch.autograd.grad = _timed(probe, torch.autograd.grad, GRAD)


def _timed(probe: Probe, original: Any, slot: int) -> Any:
    recorder, boundary, losses, facts = probe.recorder, probe.boundary, probe.losses, probe.facts
    begins, ends = begin(Kind.BACKWARD, slot), end(Kind.BACKWARD, slot)
    inside = False

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        # Reentrant checkpointing calls backward from inside a backward.
        if inside or not recorder.own_thread():
            return original(tensors, *args, **kwargs)
        probe.asleep = False
        if kwargs.get("create_graph"):
            facts.double_backward = True
        if losses is not None and slot == BACKWARD:
            with probe.survive("losses"):
                losses.keep(tensors)
        inside = True
        recorder.mark(begins)
        try:
            result = original(tensors, *args, **kwargs)
        finally:
            inside = False
            recorder.mark(ends)
        if slot == BACKWARD or not facts.double_backward:
            with probe.survive("boundary"):
                boundary.ended(Kind.BACKWARD, slot)
        return result

    return backward
