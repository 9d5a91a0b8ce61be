"""Not a phase of the step: `torch.save`, so that checkpointing is accounted for by name."""

from __future__ import annotations

import functools
from typing import Any

from hotloop.probe.events import Kind, begin, end
from hotloop.probe.probe import Probe


def install(probe: Probe) -> None:
    """Patch `torch.save`."""
    import torch

    original = torch.save
    recorder = probe.recorder

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> None:
        if probe.asleep or not recorder.own_thread():
            return original(*args, **kwargs)
        recorder.mark(begin(Kind.SAVE))
        try:
            return original(*args, **kwargs)
        finally:
            recorder.mark(end(Kind.SAVE))

    torch.save = save
