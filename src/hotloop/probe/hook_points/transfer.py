"""Hook point `transfer`: copies from host to device that the program asks for; installed only where torch has a device.

Whether there is one is not asked: the question itself would start the driver, and a program that forks later could
not use the device any more.
"""

from __future__ import annotations

from typing import Any

from hotloop.probe.frameless import Around, own_method
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.sections import section


def install(probe: Probe) -> None:
    """Patch `Tensor.to` and `Tensor.cuda`; nothing where torch was built for the CPU alone."""
    import torch

    if torch.version.cuda is None and torch.version.hip is None:
        return
    for name in ("to", "cuda"):
        original = getattr(torch.Tensor, name)
        setattr(torch.Tensor, name, Around(original, _timed(probe, own_method(torch.Tensor, name))))


def _timed(probe: Probe, original: Any) -> Any:
    from torch import cuda

    enter, leave = section(probe, Kind.TRANSFER)

    def move(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Until the device is in use a `.to()` stays on the host.
        if not cuda.is_initialized() or self.is_cuda or not enter():
            return original(self, *args, **kwargs)
        try:
            return original(self, *args, **kwargs)
        finally:
            leave()

    return move
