"""A limit for what torch's allocator may hold of each device that the model is on."""

from __future__ import annotations

from typing import Any

from hotloop.probe.activation.activation import Activation

NAME = "device_memory_cap"
"""How the launcher orders it; it belongs to no optimization."""


class DeviceMemoryCap(Activation):
    """Lets allocations beyond a limit fail as they would on a smaller device.

    The limit holds from the first training forward on, for all that was allocated before, too. Contexts and libraries
    are beside it.

    Args:
        limit_bytes: of each device.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._capped: dict[int, int] = {}

    def on_root(self, module: Any) -> None:
        """Set the limit on each device of the model."""
        from torch import cuda

        for index in {each.device.index for each in module.parameters() if each.is_cuda}:
            self.cap(cuda, index)

    def cap(self, cuda: Any, index: int) -> None:
        """Set the limit on one device.

        Args:
            cuda: `torch.cuda`.
            index: of the device.
        """
        if index in self._capped:
            return
        total = cuda.get_device_properties(index).total_memory
        cuda.set_per_process_memory_fraction(min(1.0, self._limit_bytes / total), index)
        self._capped[index] = min(total, self._limit_bytes)

    def effect(self) -> tuple[bool, str]:
        """Return whether a device has the limit."""
        said = ", ".join(f"cuda:{index} is limited to {size} bytes" for index, size in self._capped.items())
        return bool(self._capped), said or "the model is on no device"
