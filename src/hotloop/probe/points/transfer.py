"""Hook point `transfer`: copies from host to device that the program asks for; installed only where there is a device."""

from __future__ import annotations

import functools
from typing import Any

from hotloop.probe.events import Kind, begin, end
from hotloop.probe.probe import Probe


def install(probe: Probe) -> None:
    """Patch `Tensor.to` and `Tensor.cuda`; nothing on a machine without an accelerator."""
    import torch

    if not torch.cuda.is_available():
        return
    for name in ("to", "cuda"):
        setattr(torch.Tensor, name, _timed(probe, getattr(torch.Tensor, name)))


def _timed(probe: Probe, original: Any) -> Any:
    recorder = probe.recorder
    begins, ends = begin(Kind.TRANSFER), end(Kind.TRANSFER)

    @functools.wraps(original)
    def move(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type != "cpu" or probe.asleep or not recorder.own_thread():
            return original(self, *args, **kwargs)
        recorder.mark(begins)
        try:
            return original(self, *args, **kwargs)
        finally:
            recorder.mark(ends)

    return move
