"""Hook point `backward`: `Tensor.backward` and `torch.autograd.backward` are one function; `autograd.grad` another."""

from __future__ import annotations

import functools
from time import monotonic_ns
from typing import Any

from hotloop.probe.probe import Probe
from hotloop.probe.record.events import TIME_SHIFT, Kind, end
from hotloop.probe.sections import section

BACKWARD, GRAD = 0, 1
"""Slots."""
CREATE_GRAPH_AT = (3, 4)
"""The place of `create_graph` among the arguments; `Tensor.backward` gives it there."""


def install(probe: Probe) -> None:
    """Patch the two functions where `Tensor.backward` and programs look them up: on `torch.autograd`."""
    import torch

    for name, slot in (("backward", BACKWARD), ("grad", GRAD)):
        original = getattr(torch.autograd, name)
        timed = _timed(probe, original, slot)
        setattr(torch.autograd, name, timed)
        if probe.losses is None:
            probe.boundary.pace.swap_while_lean(torch.autograd, name, timed, original)


def _timed(probe: Probe, original: Any, slot: int) -> Any:
    import torch

    is_anomaly_enabled = torch.is_anomaly_enabled
    is_profiled: Any = getattr(torch._C._autograd, "_profiler_enabled", bool)
    enter, _ = section(probe, Kind.BACKWARD, slot, trains=True)
    ended, facts, recorder, ends = probe.boundary.ended, probe.facts, probe.recorder, end(Kind.BACKWARD, slot)
    create_graph_at = CREATE_GRAPH_AT[slot]
    keeps_losses, sites = probe.losses is not None, probe.sites
    inside = False

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if recorder.lean and not keeps_losses:
            return original(*args, **kwargs)
        # Reentrant checkpointing calls backward from inside a backward.
        if inside or not enter():
            return original(*args, **kwargs)
        if not facts.settled:  # what slows a backward may be on around this one alone
            facts.num_looked += 1
            facts.num_profiled += is_profiled()
            facts.anomaly_mode = facts.anomaly_mode or is_anomaly_enabled()
        if sites.open("backward"):
            with probe.survive("sites"):
                sites.note("backward", original.__name__)
        if kwargs.get("create_graph") or (len(args) > create_graph_at and args[create_graph_at]):
            facts.double_backward = True
        if keeps_losses:
            _keep_loss(probe, slot, args, kwargs)
        inside = probe.in_backward = True
        try:
            result = original(*args, **kwargs)
        finally:
            inside = probe.in_backward = False
            try:
                recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | ends)
            except Exception:  # the probe fails open
                probe.note("record:backward")
        if slot == BACKWARD or not facts.double_backward:
            try:
                ended(Kind.BACKWARD, slot)
            except Exception:  # the probe fails open
                probe.note("boundary")
        return result

    return backward


def _keep_loss(probe: Probe, slot: int, args: Any, kwargs: Any) -> None:
    if slot == BACKWARD:
        with probe.survive("losses"):
            probe.losses.keep(args[0] if args else kwargs["tensors"])  # type: ignore[union-attr]
