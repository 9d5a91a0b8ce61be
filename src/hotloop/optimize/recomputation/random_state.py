"""The random numbers that come next: of the host, and of the devices that something lies on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class RandomState:
    """The state of now.

    Args:
        tensors: whose devices are meant.
    """

    def __init__(self, tensors: Iterable[Any]) -> None:
        import torch

        self._host = torch.get_rng_state()
        devices = {each.device for each in tensors if each.is_cuda}
        self._devices = {device: torch.cuda.get_rng_state(device) for device in devices}

    def restore(self) -> None:
        """Let the same numbers come again."""
        import torch

        torch.set_rng_state(self._host)
        for device, state in self._devices.items():
            torch.cuda.set_rng_state(state, device)

    def has_moved(self) -> bool:
        """Whether a number was drawn since."""
        import torch

        return not torch.equal(self._host, torch.get_rng_state()) or any(
            not torch.equal(state, torch.cuda.get_rng_state(device))
            for device, state in self._devices.items()
        )
