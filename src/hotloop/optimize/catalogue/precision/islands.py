"""Modules that are kept out of autocast, because they are slower in half precision."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

from hotloop.optimize.catalogue.precision.autocast import Autocast
from hotloop.optimize.catalogue.precision.half_timing import both_ways, in_full
from hotloop.probe.hook_points.root_hook import PLACE

SLOWER = 1.1
"""So many times as slow in half as in fp32, casts to fp32 included, before a module is kept out."""
LEAST_S = 20e-6
"""Per step: what would be saved below it is noise of the clock."""


class IslandAutocast(Autocast):
    """Runs training forwards under autocast, modules left out that were slower in it.

    In the first training forward each module without children is timed both ways on the inputs that it is given.

    Args:
        dtype: `bfloat16` or `float16`.
    """

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype)
        self._given: dict[Any, tuple[Any, Any]] = {}
        self._calls: dict[Any, Any] = {}
        """What stands in each module's place while its inputs are noted."""
        self._kept_out: list[tuple[str, float, float]] = []
        """Class, and seconds in half and in fp32."""
        self._num_timed = 0
        self._decided = False

    def on_root(self, module: Any) -> None:
        """Note the inputs of the modules in their first call."""
        if self.is_wide(module):
            return
        for part in module.modules():
            if not any(part.children()) and part is not module and part.__dict__.get(PLACE) is None:
                part.__dict__[PLACE] = self._calls[part] = self._noted(part)

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """Decide after the first forward."""
        output = super().on_forward_output(module, output)
        if not self._decided and self._given:
            self._decide()
        return output

    def effect(self) -> tuple[bool, str]:
        """Return whether autocast acted and some module was kept out of it."""
        on, evidence = super().effect()
        if not on:
            return on, evidence
        if not self._kept_out:
            return False, f"none of {self._num_timed} modules was slower in {self._dtype_name}"
        kinds = Counter(name for name, _, _ in self._kept_out)
        named = ", ".join(f"{num} {name}" for name, num in kinds.most_common(4))
        half, full = (sum(times) for times in list(zip(*self._kept_out, strict=True))[1:])
        return True, (
            f"{evidence}; kept out: {named} of {self._num_timed} modules, "
            f"{half * 1e3:.2f} ms a step in half, {full * 1e3:.2f} ms in fp32"
        )

    def _noted(self, part: Any) -> Any:
        own = part._call_impl

        @functools.wraps(own)
        def run(*args: Any, **kwargs: Any) -> Any:
            self._given.setdefault(part, (args, kwargs))
            return own(*args, **kwargs)

        return run

    def _decide(self) -> None:
        import torch

        self._decided = True
        dtype = getattr(torch, self._dtype_name)
        for part, call in self._calls.items():
            if part.__dict__.get(PLACE) is call:
                del part.__dict__[PLACE]
            if part not in self._given:
                continue
            try:
                half, full = both_ways(part, *self._given[part], dtype)
            except Exception:
                continue
            self._num_timed += 1
            if half > SLOWER * full and half - full > LEAST_S:
                part.__dict__[PLACE] = _outside(part)
                self._kept_out.append((type(part).__name__, half, full))
        self._given.clear()
        self._calls.clear()


def _outside(part: Any) -> Any:
    """Return the module's call without autocast, on inputs in fp32."""
    import torch

    own = part._call_impl
    parameter = next(part.parameters(), None)

    @functools.wraps(own)
    def run(*args: Any, **kwargs: Any) -> Any:
        device = parameter.device.type if parameter is not None else _device(args, kwargs)
        if not torch.is_autocast_enabled(device):
            return own(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return own(*in_full(args), **in_full(kwargs))

    return run


def _device(args: Any, kwargs: Any) -> str:
    import torch

    values = [*args, *kwargs.values()]
    return next((one.device.type for one in values if isinstance(one, torch.Tensor)), "cpu")
