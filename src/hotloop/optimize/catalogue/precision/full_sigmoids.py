"""Sigmoids in fp32 under autocast, where what the model returns is made of them.

bfloat16 has no number between 0.996 and 1: a probability above 0.998 is 1, and a loss of `log(1 - p)` is that of a hard
error. Autocast computes softmax in fp32 for that, and a sigmoid as it comes. A DCGAN, whose discriminator ends in a
sigmoid, was 1.5 times as fast in bfloat16, and after 16 steps its loss was 100 for good.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from hotloop.optimize.program.containers import tensors_in
from hotloop.probe.record.probabilities import ends_in_sigmoid


class FullSigmoids:
    """Knows of each root if its sigmoids have to stay in fp32.

    They do if its first output is made of one: gates within a model are left to autocast. Before that is seen, and
    where it cannot be (a compiled model), they do if the source of the model speaks of one.
    """

    def __init__(self) -> None:
        self._roots: dict[int, bool] = {}
        self._looked_at: set[int] = set()

    def context(self, module: Any) -> AbstractContextManager[None]:
        """Return what all forwards of this root run in."""
        self._roots[id(module)] = any(
            _speaks_of_sigmoid(kind) for kind in {type(one) for one in module.modules()}
        )
        return _Context(self._roots, id(module))

    def look(self, module: Any, output: Any) -> None:
        """Decide on a root by its first output with a graph."""
        graphs = [tensor for tensor in tensors_in(output) if tensor.grad_fn is not None]
        if id(module) in self._looked_at or not graphs:
            return
        self._looked_at.add(id(module))
        ends = {ends_in_sigmoid(tensor) for tensor in graphs}
        if True in ends or None not in ends:
            self._roots[id(module)] = True in ends

    def any(self) -> bool:
        """Whether those of some root stay in fp32."""
        return any(self._roots[key] for key in self._looked_at)


class _Context(AbstractContextManager[None]):
    """Computes sigmoids in fp32 while that is so for a root."""

    def __init__(self, roots: Mapping[int, bool], root: int) -> None:
        self._roots, self._root = roots, root
        self._mode: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> None:
        self._mode = _mode_type()() if self._roots[self._root] else nullcontext()
        self._mode.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)


def _speaks_of_sigmoid(kind: type) -> bool:
    import torch

    if issubclass(kind, torch.nn.Sigmoid):
        return True
    if kind.__module__.startswith("torch.nn."):
        return False  # the gates of recurrent cells are not in Python
    try:
        return "sigmoid" in inspect.getsource(kind).lower()
    except (OSError, TypeError):  # made at run time
        return False


@functools.cache
def _mode_type() -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    sigmoids = {torch.sigmoid, torch.Tensor.sigmoid, torch.special.expit}
    half = (torch.bfloat16, torch.float16)

    class InFull(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in sigmoids and args and args[0].dtype in half:
                args = (args[0].float(), *args[1:])
            return func(*args, **(kwargs or {}))

    return InFull
