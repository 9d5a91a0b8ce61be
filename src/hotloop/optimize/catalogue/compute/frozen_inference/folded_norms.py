"""Batch norms that directly follow a layer, seen in a forward, and folded into its weights."""

from __future__ import annotations

import weakref
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights

from hotloop.optimize.comparison.exchange import Exchange

Pair = tuple[Any, Any]
"""A layer, and the norm behind it."""


class Watch:
    """Sees in one forward what each norm is given.

    Args:
        root: the model, in evaluation mode, about to be called.
    """

    def __init__(self, root: Any) -> None:
        self.root = root
        self._made: dict[int, tuple[Any, Any]] = {}
        self._calls: Counter[Any] = Counter()
        self._pairs: list[Pair] = []
        layers = [
            each for each in root.modules() if isinstance(each, (_ConvNd, nn.Linear)) and _is_plain(each)
        ]
        norms = [each for each in root.modules() if isinstance(each, _BatchNorm) and _is_plain(each)]
        self._handles = [each.register_forward_hook(self._layer_ran) for each in layers]
        self._handles += [each.register_forward_pre_hook(self._norm_runs) for each in norms]

    def _layer_ran(self, layer: Any, args: Any, output: Any) -> None:
        self._calls[layer] += 1
        self._made[id(output)] = (weakref.ref(output), layer)

    def _norm_runs(self, norm: Any, args: Any) -> None:
        self._calls[norm] += 1
        made, layer = self._made.get(id(args[0]), (None, None))
        if made is not None and made() is args[0] and not norm.training and norm.running_mean is not None:
            self._pairs.append((layer, norm))

    def end(self) -> None:
        """Look no more."""
        for handle in self._handles:
            handle.remove()
        self._made.clear()

    def exchanges(self) -> list[Exchange]:
        """Return the pairs, those of one module together; what ran more than once has other inputs too."""
        names = {module: name for name, module in self.root.named_modules()}
        grouped: dict[str, list[Pair]] = defaultdict(list)
        for layer, norm in self._pairs:
            if self._calls[layer] == self._calls[norm] == 1:
                grouped[_around(names[layer], names[norm])].append((layer, norm))
        return [FoldedNorms(self.root.get_submodule(path), path, pairs) for path, pairs in grouped.items()]


class FoldedNorms(Exchange):
    """The norms of one module, folded.

    Args:
        module: holds them, at whatever depth.
        path: its name in the model.
        pairs: layers with their norms.
    """

    keeps_gradients = False
    counts = False

    def __init__(self, module: Any, path: str, pairs: Sequence[Pair]) -> None:
        num = len(pairs)
        super().__init__(f"{path or type(module).__name__} ({num} batch norm{'s' * (num > 1)} folded)")
        self.modules = [module]
        self._pairs = pairs
        self._holders = [_holders(module, norm) for _, norm in pairs]
        self._own = [(layer.weight, layer.bias) for layer, _ in pairs]
        self._folded: list[tuple[Any, Any]] = []

    def put(self, on: bool) -> None:
        """Give the layers the folded weights and let nothing stand for the norms, or as it was."""
        if on and not self._folded:
            self._folded = [_fold(layer, norm) for layer, norm in self._pairs]
        weights = self._folded if on else self._own
        for (layer, norm), (weight, bias), holders in zip(self._pairs, weights, self._holders, strict=True):
            layer._parameters["weight"], layer._parameters["bias"] = weight, bias
            for holder, name in holders:
                holder._modules[name] = nn.Identity() if on else norm


def _is_plain(module: Any) -> bool:
    """Whether it is torch's own layer, and its weights are kept, not computed."""
    return type(module).__module__.startswith("torch.nn.modules") and not hasattr(module, "parametrizations")


def _around(one: str, other: str) -> str:
    """Return the path of the innermost module that holds both."""
    common: list[str] = []
    for first, second in zip(one.split(".")[:-1], other.split(".")[:-1], strict=False):
        if first != second:
            break
        common.append(first)
    return ".".join(common)


def _holders(module: Any, norm: Any) -> list[tuple[Any, str]]:
    return [
        (each, name) for each in module.modules() for name, child in each._modules.items() if child is norm
    ]


def _fold(layer: Any, norm: Any) -> tuple[Any, Any]:
    statistics = (norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    with torch.inference_mode(False), torch.no_grad():  # parameters that may be used in any mode
        if isinstance(layer, nn.Linear):
            weight, bias = fuse_linear_bn_weights(layer.weight, layer.bias, *statistics)
        else:
            weight, bias = fuse_conv_bn_weights(layer.weight, layer.bias, *statistics, layer.transposed)
        return weight, bias
