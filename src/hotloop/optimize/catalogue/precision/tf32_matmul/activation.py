"""The activation of tf32_matmul: the precision of fp32 matrix products."""

from __future__ import annotations

from typing import Any

from hotloop.probe.activation.activation import Activation
from hotloop.probe.record.facts import matmul_precision

FIRST_CAPABILITY = 8
"""Ampere: the first generation with TF32 tensor cores."""


class HighPrecision(Activation):
    """Sets the precision to "high"."""

    def __init__(self) -> None:
        self._seen = "no training forward was seen"
        self._on = False

    def on_torch(self) -> None:
        """Set it before the program's own code runs."""
        import torch

        torch.set_float32_matmul_precision("high")

    def on_root(self, module: Any) -> None:
        """Set it again, should the program have set its own, and look at what will compute."""
        import torch

        torch.set_float32_matmul_precision("high")
        device = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
        if device.type != "cuda":
            self._seen = f"the model is on {device.type}"
            return
        major, minor = torch.cuda.get_device_capability(device)
        self._on = major >= FIRST_CAPABILITY
        self._seen = f"matmul precision 'high' on a device of capability {major}.{minor}"

    def effect(self) -> tuple[bool, str]:
        """Return whether it is set, and the device has the units."""
        import torch

        precision = matmul_precision(torch)
        if precision != "high":
            return False, f"matmul precision is {precision!r}"
        return self._on, self._seen


def current_precision() -> Any:
    """Return the precision of fp32 matrix products."""
    import torch

    return matmul_precision(torch)


def set_precision(precision: Any) -> None:
    """Set it."""
    import torch

    torch.set_float32_matmul_precision(precision)
