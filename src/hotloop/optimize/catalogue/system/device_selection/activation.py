"""The activation of device_selection: sees whether the program's devices are those that were named."""

from __future__ import annotations

import os

from hotloop.probe.activation.activation import Activation

VARIABLE = "CUDA_VISIBLE_DEVICES"


class VisibleDevices(Activation):
    """Looks, and changes nothing: CUDA reads the variable when it starts.

    Args:
        devices: numbers with commas between.
    """

    def __init__(self, devices: str) -> None:
        self._devices = devices

    def effect(self) -> tuple[bool, str]:
        """Return whether torch sees so many devices as were named."""
        import torch

        found = os.environ.get(VARIABLE)
        if found != self._devices:
            return False, f"{VARIABLE} is {found!r} in the program"
        wanted, seen = len(self._devices.split(",")), torch.cuda.device_count()
        return seen == wanted, f"{VARIABLE}={found}: torch sees {seen} of {wanted} devices"
