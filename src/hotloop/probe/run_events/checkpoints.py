"""Not a phase of the step: `torch.save` and its like, so that checkpointing is accounted for by name."""

from __future__ import annotations

import functools

from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.sections import around, section


def install(probe: Probe) -> None:
    """Patch `torch.save` and `torch.jit.save`."""
    import torch

    marks = section(probe, Kind.SAVE)
    for module in (torch, torch.jit):
        original = module.save
        module.save = functools.wraps(original)(around(marks, original))
