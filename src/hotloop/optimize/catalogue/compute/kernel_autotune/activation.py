"""The activation of kernel_autotune: kernels are chosen by timing them."""

from __future__ import annotations

from typing import Any

from hotloop.probe.activation.activation import Activation


class KernelBenchmark(Activation):
    """Sets cuDNN's flag, and keeps the results of TunableOp.

    Args:
        tunes_products: whether TunableOp is on.
    """

    def __init__(self, *, tunes_products: bool = False) -> None:
        self._device = ""
        self._tunes_products = tunes_products

    def on_torch(self) -> None:
        """Set it before the program's own code runs."""
        import torch

        torch.backends.cudnn.benchmark = True

    def on_root(self, module: Any) -> None:
        """Set it again: seeding functions of programs switch it off."""
        import torch

        torch.backends.cudnn.benchmark = True
        self._device = next((parameter.device.type for parameter in module.parameters()), "")

    def effect(self) -> tuple[bool, str]:
        """Return whether it is on while a model trains on the device; keep what TunableOp has found so far."""
        import torch

        if self._tunes_products:
            # It writes its file when the process ends, and a trial ends without shutting the program down.
            torch.cuda.tunable.write_file()
        if not torch.backends.cudnn.benchmark:
            return False, "the program switched torch.backends.cudnn.benchmark off again"
        if self._device != "cuda":
            return False, f"the model is on {self._device or 'no device'}: nothing is chosen by measuring"
        return True, "torch.backends.cudnn.benchmark is on and the model is on the device"


def benchmark_is_on() -> Any:
    """Return cuDNN's flag."""
    import torch

    return torch.backends.cudnn.benchmark


def set_benchmark(value: Any) -> None:
    """Set cuDNN's flag."""
    import torch

    torch.backends.cudnn.benchmark = value
