"""Hook point `backward`: `Tensor.backward` and `torch.autograd.backward` are one function; `autograd.grad` another.

Both stay as they are, since TorchScript and programs know them: what is timed is what they call, one private function
that starts the engine.
"""

from __future__ import annotations

import sys
from time import monotonic_ns
from types import FrameType
from typing import Any

from hotloop.probe.frameless import Timed
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import TIME_SHIFT, Kind, end
from hotloop.probe.sections import Section, section
from hotloop.probe.tracers import reader

BACKWARD, GRAD = 0, 1
"""Slots."""
_ENGINE = "_engine_run_backward"
_DEPTH = 3
"""Frames from ours to the function that called the engine."""


def install(probe: Probe) -> None:
    """Time the function that starts the engine, under both names that it has."""
    from torch import autograd
    from torch.autograd import graph

    original = getattr(graph, _ENGINE)
    timed = Timed(original, _marks(probe))
    for module in (graph, autograd):
        setattr(module, _ENGINE, timed)
        if probe.losses is None:
            probe.boundary.pace.swap_while_lean(module, _ENGINE, timed, original)


def _marks(probe: Probe) -> Section:
    import torch

    is_anomaly_enabled = torch.is_anomaly_enabled
    is_profiled: Any = getattr(torch._C._autograd, "_profiler_enabled", bool)
    enters = [section(probe, Kind.BACKWARD, slot, trains=True).enter for slot in (BACKWARD, GRAD)]
    marks = [end(Kind.BACKWARD, slot) for slot in (BACKWARD, GRAD)]
    ended, facts, recorder = probe.boundary.ended, probe.facts, probe.recorder
    backward = torch.autograd.backward.__code__
    keeps_losses, sites = probe.losses is not None, probe.sites
    is_traced = reader()
    slot = BACKWARD

    def enter() -> bool:
        nonlocal slot
        # Reentrant checkpointing calls backward from inside a backward.
        if probe.in_backward or (recorder.lean and not keeps_losses) or is_traced():
            return False
        caller = sys._getframe(_DEPTH)
        which = BACKWARD if caller.f_code is backward else GRAD
        if not enters[which]():
            return False
        slot = which
        if not facts.settled:  # what slows a backward may be on around this one alone
            facts.num_looked += 1
            facts.num_profiled += is_profiled()
            with probe.survive("backward:reduces"):
                facts.num_reduced += facts.reduces()
            facts.anomaly_mode = facts.anomaly_mode or is_anomaly_enabled()
        if sites.open("backward"):
            with probe.survive("sites"):
                sites.note("backward", "grad" if slot else "backward")
        with probe.survive("backward"):
            _look(probe, caller, keeps_losses=keeps_losses and slot == BACKWARD)
        probe.in_backward = True
        return True

    def leave() -> None:
        probe.in_backward = False
        invariants = probe.invariants
        if (
            keeps_losses
            and slot == BACKWARD
            and invariants is not None
            and not invariants.enough_backwards
            and not probe.capturing()
        ):
            with probe.survive("invariants"), probe.boundary.clock.still():
                invariants.after_backward()
        try:
            recorder.append((monotonic_ns() - recorder.base) << TIME_SHIFT | marks[slot])
            if slot == BACKWARD or not facts.double_backward:
                ended(Kind.BACKWARD, slot)
        except Exception:  # the probe fails open
            probe.note("record:backward")

    return Section(enter, leave)


def _look(probe: Probe, caller: FrameType, *, keeps_losses: bool) -> None:
    """Read what the call was asked for from the variables of torch's own function."""
    if probe.facts.double_backward and not keeps_losses:
        return
    asked = caller.f_locals
    if asked.get("create_graph"):
        probe.facts.double_backward = True
    invariants = probe.invariants
    if keeps_losses and invariants is not None and not invariants.enough_steps and not probe.capturing():
        with probe.boundary.clock.still():
            invariants.backward()
    if keeps_losses and probe.losses is not None and not probe.capturing():
        with probe.survive("losses"):
            probe.losses.keep(asked["tensors"])
