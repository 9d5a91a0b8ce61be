"""Wait until a device has done what it was given."""

from __future__ import annotations

from typing import Any


def synchronize(device: Any) -> None:
    """Wait for a device; the processor is never behind."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type != "cpu" and hasattr(torch, "accelerator"):
        torch.accelerator.synchronize(device)
