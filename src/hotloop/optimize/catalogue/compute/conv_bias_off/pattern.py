"""Which batch norm is given what a convolution returned, seen in one forward."""

from __future__ import annotations

from typing import Any

from torch import nn

from hotloop.optimize.catalogue.compute.conv_bias_off.bias_free_forward import CONVOLUTIONS, Pair, cancels

NORMS = {nn.Conv1d: nn.BatchNorm1d, nn.Conv2d: nn.BatchNorm2d, nn.Conv3d: nn.BatchNorm3d}


class ExecutedPairs:
    """Watches convolutions and norms of a model until it is asked.

    Args:
        root: the model; about to be called.
    """

    def __init__(self, root: Any) -> None:
        self._names = {id(module): path for path, module in root.named_modules()}
        self._outputs: dict[int, tuple[Any, Any]] = {}
        """Outputs by identity, kept alive so that no other gets it, and who made them."""
        self._calls: dict[int, int] = {}
        self._pairs: dict[int, Pair] = {}
        self._left: list[str] = []
        self._handles = [
            module.register_forward_hook(self._convolved)
            if type(module) in CONVOLUTIONS
            else module.register_forward_pre_hook(self._normalizes)
            for module in root.modules()
            if (type(module) in CONVOLUTIONS and module.bias is not None) or type(module) in NORMS.values()
        ]

    def _convolved(self, conv: Any, _: Any, output: Any) -> None:
        self._calls[id(conv)] = self._calls.get(id(conv), 0) + 1
        self._outputs[id(output)] = (output, conv)

    def _normalizes(self, norm: Any, inputs: Any) -> None:
        _, conv = self._outputs.get(id(inputs[0]) if inputs else 0, (None, None))
        if conv is None or type(norm) is not NORMS[type(conv)]:
            return
        if not cancels(norm):
            self._left.append(f"{self._names[id(conv)]}: its batch norm is in evaluation mode")
        else:
            self._pairs[id(conv)] = Pair(conv, norm)

    def end(self) -> tuple[list[Pair], list[str]]:
        """Return the pairs, and why other convolutions are left."""
        for handle in self._handles:
            handle.remove()
        self._outputs.clear()
        norms = [id(pair.norm) for pair in self._pairs.values()]
        once = {
            key: pair
            for key, pair in self._pairs.items()
            if self._calls[key] == 1 and norms.count(id(pair.norm)) == 1
        }
        shared = [self._names[key] for key in self._pairs if key not in once]
        left = [f"{name}: it, or its batch norm, runs more than once in a forward" for name in shared]
        return list(once.values()), [*self._left, *left]
