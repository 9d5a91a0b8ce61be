"""torch's gradient scaler: what a loss is before it is scaled, and steps that are left out when gradients overflow."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from hotloop.probe.hook_points.step_hooks import Slots
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind, begin, end


def install(probe: Probe, slots: Slots) -> None:
    """Patch `GradScaler.scale` and `GradScaler.step`, which every scaler of torch inherits.

    A step that is left out calls no optimizer, so no hook of torch's fires: without this, two forwards and backwards
    would count as one step, in the arm in which gradients overflowed and in no other.
    """
    import torch

    scaler = torch.amp.GradScaler
    if probe.losses is not None:
        scaler.scale = _noting_scale(probe, scaler.scale)
    scaler.step = _counting_step(probe, slots, scaler.step)


def _noting_scale(probe: Probe, original: Any) -> Any:
    @functools.wraps(original)
    def scale(self: Any, outputs: Any) -> Any:
        scaled = original(self, outputs)
        with probe.survive("scaler.scale"):
            if probe.losses is not None and hasattr(outputs, "detach"):
                probe.losses.scaled = (weakref.ref(scaled), outputs.detach())
        return scaled

    return scale


def _counting_step(probe: Probe, slots: Slots, original: Any) -> Any:
    boundary, recorder = probe.boundary, probe.recorder

    def num_steps() -> int:
        if recorder.catch_up is not None:  # steps that were only noted are not counted yet
            recorder.catch_up()
        return boundary.num_optimizer

    @functools.wraps(original)
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        before = num_steps()
        result = original(self, optimizer, *args, **kwargs)
        with probe.survive("scaler.step"):
            if num_steps() == before and self.is_enabled() and recorder.own_thread():
                probe.facts.skipped_steps += 1
                slot = slots.of(optimizer)
                recorder.mark(begin(Kind.OPTIMIZER, slot))
                recorder.mark(end(Kind.OPTIMIZER, slot))
                boundary.ended(Kind.OPTIMIZER, slot)
        return result

    return step
