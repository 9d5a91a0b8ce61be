"""RMSNorm in one kernel, and the optimization that lets hotloop try it."""

from __future__ import annotations

from typing import Any


def use_fused_rms_norm(model: Any) -> Any:
    """Let every RMSNorm of a model compute in one kernel; what a patch of a program calls."""
    from plugin_kernel.rms_norm import fused_class

    for module in model.modules():
        if type(module).__name__ == "RMSNorm":
            module.__class__ = fused_class(type(module))
    return model
