"""rms_norm_kernel: what hotloop needs to know of the kernel."""

from __future__ import annotations

from typing import Any, ClassVar

from hotloop.optimize.plugins.module_replacement import ModuleReplacement
from hotloop.patterns.refusal import NotThis


class RmsNormKernel(ModuleReplacement):
    """Compute RMSNorm in one kernel.

    What it does: modules of a class named RMSNorm, with a weight and an `eps`, get a forward that calls a Triton kernel on
    a device, and torch's own `rms_norm` on the CPU.

    Why it is faster: written out, the norm passes over memory five times.

    When it does not help: norms are a small part of the step; torch.compile fuses them already.

    Effect on numerics: sums in another order; the mean is taken in fp32.

    Example: `plugin_kernel.use_fused_rms_norm(model)`

    References: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
    """

    name: ClassVar[str] = "rms_norm_kernel"
    family: ClassVar[str] = "compute"
    replaces: ClassVar[str] = "RMSNorm"
    applied_by: ClassVar[str] = "plugin_kernel.use_fused_rms_norm"

    def replacement(self, module: Any) -> type:
        """Return the class with the kernel; torch's own RMSNorm is left alone."""
        from plugin_kernel.rms_norm import fused_class

        if type(module).__module__.startswith("torch."):
            raise NotThis("it is torch's own, which has a kernel")
        if not hasattr(module, "weight") or not hasattr(module, "eps"):
            raise NotThis("it has no weight, or no eps")
        return fused_class(type(module))
