"""Modules that are kept out of autocast, because each was seen to be worse in half precision."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hotloop.optimize.reduced_precision.autocast import Autocast
from hotloop.optimize.reduced_precision.half_runs import in_full
from hotloop.probe.hook_points.inner_call import InnerCall
from hotloop.probe.hook_points.root_hook import PLACE


class IslandAutocast(Autocast):
    """Runs training forwards under autocast, some modules left out.

    In the first training forward of each root its modules without children are looked at on the inputs that they are
    given; those that are worse in half precision run in fp32 from the next forward on: parts of the first may be
    computed again.

    Args:
        dtype: `bfloat16` or `float16`.
    """

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype)
        self._given: dict[Any, tuple[Any, Any]] = {}
        self._calls: dict[Any, Any] = {}
        """What stands in each module's place while its inputs are noted."""
        self.kept_out: list[Any] = []
        self._waiting: list[Any] = []
        """Of those, the ones that run under autocast until the next forward."""
        self.num_seen = 0

    @abstractmethod
    def worse(self, seen: Mapping[Any, tuple[Any, Any]], dtype: Any) -> list[Any]:
        """Return the modules to keep out.

        Args:
            seen: modules with the arguments they were given.
            dtype: of torch, of autocast.
        """

    @abstractmethod
    def why(self) -> str:
        """Return what was seen of those that are kept out, for the evidence."""

    @abstractmethod
    def why_none(self) -> str:
        """Return why none is kept out, for the evidence."""

    def on_root(self, module: Any) -> None:
        """Note the inputs of the modules in their first call."""
        if self.is_wide(module):
            return
        for part in module.modules():
            if not any(part.children()) and part is not module and part.__dict__.get(PLACE) is None:
                part.__dict__[PLACE] = self._calls[part] = self._noted(part)

    def on_forward_inputs(
        self,
        module: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[Any, Any]:
        """Keep out what was found in an earlier forward."""
        for part in self._waiting:
            part.__dict__[PLACE] = _outside(part)
        self._waiting.clear()
        return args, kwargs

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """Decide after the first forward of a root: a GAN has two."""
        output = super().on_forward_output(module, output)
        if self._given:
            self._decide([part for part in module.modules() if part in self._given])
        return output

    def effect(self) -> tuple[bool, str]:
        """Return whether autocast acted and some module was kept out of it."""
        on, evidence = super().effect()
        if not on:
            return on, evidence
        if not self.kept_out:
            return False, self.why_none()
        kinds = Counter(type(part).__name__ for part in self.kept_out)
        named = ", ".join(f"{num} {name}" for name, num in kinds.most_common(4))
        return True, f"{evidence}; kept out: {named} of {self.num_seen} modules, {self.why()}"

    def _noted(self, part: Any) -> Any:
        own = part._call_impl

        def run(*args: Any, **kwargs: Any) -> Any:
            self._given.setdefault(part, (args, kwargs))
            return own(*args, **kwargs)

        return InnerCall(run, own)

    def _decide(self, parts: Sequence[Any]) -> None:
        import torch

        for part in parts:
            if part.__dict__.get(PLACE) is self._calls.pop(part):
                del part.__dict__[PLACE]
        given = {part: self._given.pop(part) for part in parts}
        found = self.worse(given, getattr(torch, self._dtype_name))
        self.kept_out += found
        self._waiting += found


def _outside(part: Any) -> Any:
    """Return the module's call without autocast, on inputs in fp32."""
    import torch

    own = part._call_impl
    parameter = next(part.parameters(), None)

    def run(*args: Any, **kwargs: Any) -> Any:
        device = parameter.device.type if parameter is not None else _device(args, kwargs)
        if not torch.is_autocast_enabled(device):
            return own(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return own(*in_full(args), **in_full(kwargs))

    return InnerCall(run, own)


def _device(args: Any, kwargs: Any) -> str:
    import torch

    values = [*args, *kwargs.values()]
    return next((one.device.type for one in values if isinstance(one, torch.Tensor)), "cpu")
