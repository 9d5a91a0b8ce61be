"""Not a phase of the step: `torch.save` and its like, so that checkpointing is accounted for by name.

The public functions stay as they are: what is timed is what they call.
"""

from __future__ import annotations

from hotloop.probe.frameless import Around, Timed
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.sections import around, section


def install(probe: Probe) -> None:
    """Time the functions that write a checkpoint, and the method that writes a TorchScript module."""
    from torch import serialization
    from torch.jit import RecursiveScriptModule

    marks = section(probe, Kind.SAVE)
    for name in ("_save", "_legacy_save"):
        setattr(serialization, name, Timed(getattr(serialization, name), marks))
    original = RecursiveScriptModule.save
    RecursiveScriptModule.save = Around(original, around(marks, original))
