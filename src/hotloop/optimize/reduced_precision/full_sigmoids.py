"""Sigmoids in fp32 under autocast, where what the model returns is made of them.

bfloat16 has no number between 0.996 and 1: a probability above 0.998 is 1, and a loss of `log(1 - p)` is that of a hard
error. Autocast computes softmax in fp32 for that, and a sigmoid as it comes. A DCGAN, whose discriminator ends in a
sigmoid, was 1.5 times as fast in bfloat16, and after 16 steps its loss was 100 for good.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from hotloop.probe.record.probabilities import ends_in_sigmoid


class FullSigmoids:
    """Knows of each root if its sigmoids have to stay in fp32.

    They do from its second forward on if its first output is made of one: gates within a model are left to autocast.
    Where that cannot be seen (a compiled model), they do if the source of the model speaks of one.
    """

    def __init__(self) -> None:
        self._roots: dict[int, bool] = {}
        """By identity; a root that is not here has not returned anything with a graph."""
        self.acted = False
        """Whether a sigmoid was computed in fp32 that would not have been; in compiled code nobody looks."""

    def context(self, module: Any) -> AbstractContextManager[None]:
        """Return what all forwards of this root run in."""
        key = id(module)  # the module itself would be kept alive
        self._roots.pop(key, None)
        return _Context(lambda: self._roots.get(key, False), self._act)

    def look(self, module: Any, output: Any) -> None:
        """Decide on a root by its first output; while it is traced by torch.compile or exported there is no graph."""
        import torch

        if id(module) not in self._roots and not torch.compiler.is_compiling():
            ends = ends_in_sigmoid(output)
            self._roots[id(module)] = _speaks_of_sigmoid(module) if ends is None else ends

    def _act(self) -> None:
        self.acted = True


class _Context(AbstractContextManager[None]):
    """Computes sigmoids in fp32 while that is wanted."""

    def __init__(self, wanted: Callable[[], bool], acted: Callable[[], None]) -> None:
        self._wanted, self._acted = wanted, acted
        self._mode: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> None:
        self._mode = _mode_type()(self._acted) if self._wanted() else nullcontext()
        self._mode.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)


def _speaks_of_sigmoid(module: Any) -> bool:
    return any(_names_sigmoid(kind) for kind in {type(part) for part in module.modules()})


def _names_sigmoid(kind: type) -> bool:
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
        def __init__(self, acted: Callable[[], None]) -> None:
            super().__init__()
            self._acted = acted

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in sigmoids and args and args[0].dtype in half and not _computed_again():
                if not torch.compiler.is_compiling():
                    self._acted()
                args = (args[0].float(), *args[1:])
            return func(*args, **(kwargs or {}))

    return InFull


def _computed_again() -> bool:
    """Whether this part of the forward runs once more in the backward, where no mode is on: checkpointed activations.

    With reentrant checkpoints it runs without a graph now, with others under hooks that keep no tensor.
    """
    import torch

    if torch.compiler.is_compiling():
        return False
    if not torch.is_grad_enabled():
        return True
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(False)
    return hooks is not None and getattr(hooks[0], "__module__", "") == "torch.utils.checkpoint"
