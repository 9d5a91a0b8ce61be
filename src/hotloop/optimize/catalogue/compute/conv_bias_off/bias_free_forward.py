"""Convolutions that run without their bias, in front of batch norm that knows.

The classes are changed and not the modules: those are pickled, copied and compared by the program.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from hotloop.optimize.comparison.exchange import Exchange

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


class Pair(NamedTuple):
    """A convolution and the batch norm that is given its output, and nothing else is."""

    conv: Any
    norm: Any


class Biasless:
    """Changes the classes while some convolution is to run without its bias."""

    def __init__(self) -> None:
        self._skipped: weakref.WeakKeyDictionary[Any, tuple[Any, Exchange]] = weakref.WeakKeyDictionary()
        self._due: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        """Norms whose input lacks a bias, and that bias."""
        self._own: list[tuple[Any, str, Any]] = []

    def skip(self, pair: Pair, exchange: Exchange) -> None:
        """Leave the bias out from the next call on."""
        self._skipped[pair.conv] = (weakref.ref(pair.norm), exchange)
        if not self._own:
            for cls in CONVOLUTIONS:
                self._put(cls, "_conv_forward", self._convolving(cls._conv_forward))
            self._put(_BatchNorm, "forward", self._normalizing(_BatchNorm.forward))

    def use(self, pair: Pair) -> None:
        """Use the bias again."""
        self._skipped.pop(pair.conv, None)
        if not self._skipped:
            while self._own:
                setattr(*self._own.pop())

    def _put(self, cls: Any, name: str, changed: Any) -> None:
        self._own.append((cls, name, getattr(cls, name)))
        setattr(cls, name, changed)

    def _convolving(self, original: Any) -> Any:
        skipped, due = self._skipped, self._due

        def _conv_forward(conv: Any, input: Any, weight: Any, bias: Any) -> Any:
            norm_of, exchange = skipped.get(conv, (None, None))
            norm = norm_of() if norm_of is not None else None
            if norm is None or exchange is None or bias is None or not cancels(norm):
                return original(conv, input, weight, bias)
            if norm in due:  # an earlier output was not given to it: this model does not always do the same
                skipped.pop(conv), due.pop(norm)
                return original(conv, input, weight, bias)
            exchange.num_calls += 1
            due[norm] = bias
            return original(conv, input, _WithBias.apply(weight, bias), None)

        return _conv_forward

    def _normalizing(self, original: Any) -> Any:
        due = self._due

        def forward(norm: Any, input: Any) -> Any:
            output = original(norm, input)
            bias = due.pop(norm, None)
            if bias is not None and norm.track_running_stats and norm.running_mean is not None:
                _add_to_mean(norm, bias.detach())
            return output

        return forward


def cancels(norm: Any) -> bool:
    """Whether a batch norm, as it is now, takes away what is added to a channel as a whole."""
    return bool(norm.training or (norm.running_mean is None and norm.running_var is None))


def _add_to_mean(norm: Any, bias: Any) -> None:
    """Let the running mean take up the bias, as it would have with its input.

    By `data`: autograd has the mean noted as an input of the norm, whose backward in training does not read it.
    """
    share = 1 / norm.num_batches_tracked if norm.momentum is None else norm.momentum
    norm.running_mean.data.add_(bias * share)


class _WithBias(torch.autograd.Function):  # type: ignore[misc]
    """The weight, with the bias in the graph: its gradient is zero, and there, as the program may expect."""

    @staticmethod
    def forward(ctx: Any, weight: Any, bias: Any) -> Any:
        """Return the weight."""
        ctx.save_for_backward(bias)
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Return the weight's gradient, and the bias's."""
        (bias,) = ctx.saved_tensors
        return gradient, torch.zeros_like(bias)
