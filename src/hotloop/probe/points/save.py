"""Not a phase of the step: `torch.save`, so that checkpointing is accounted for by name."""

from __future__ import annotations

import functools

from hotloop.probe.events import Kind
from hotloop.probe.probe import Probe
from hotloop.probe.sections import around, section


def install(probe: Probe) -> None:
    """Patch `torch.save`."""
    import torch

    original = torch.save
    torch.save = functools.wraps(original)(around(section(probe, Kind.SAVE), original))
