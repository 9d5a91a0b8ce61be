"""The activation of gradient_accumulation: the root is called with parts of its batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hotloop.optimize.program.containers import map_tensors, tensors_in
from hotloop.optimize.recomputation.model_blocks import unwrapped
from hotloop.optimize.recomputation.recomputed_call import RecomputedCall
from hotloop.optimize.recomputation.side_effects import side_effect
from hotloop.probe.activation.activation import Activation

MAX_DIFFERENCE = 0.02
"""Relative, of the outputs of parts and whole: five roundings to bfloat16 (2**-8). Samples that see each other differ
by as much as the outputs themselves."""


class CannotSplit(Exception):  # noqa: N818 - an answer, not an error
    """With the reason why a batch cannot be seen in parts."""


class MicroBatches(Activation):
    """Calls the root with parts of its batch.

    Args:
        num_parts: of each batch.
    """

    wraps_at_once = True

    def __init__(self, num_parts: int) -> None:
        self._num_parts = num_parts
        self._reason = ""
        self._checked = False
        self._calls: dict[int, RecomputedCall] = {}
        self._num_batches = 0

    def on_root(self, module: Any) -> None:
        """Look whether the model can be called with parts."""
        self._reason = self._reason or _reason_against(module)

    def wrap_forward(self, module: Any, call: Callable[..., Any]) -> Any:
        """Return the call in parts."""
        part_call = self._calls.setdefault(id(module), RecomputedCall(module, call))

        def run(*args: Any, **kwargs: Any) -> Any:
            if self._reason:
                return call(*args, **kwargs)
            try:
                parts = split(args, kwargs, self._num_parts)
                if not self._checked:
                    _require_same(module, call, (args, kwargs), parts)
                    self._checked = True
            except CannotSplit as reason:
                self._reason = str(reason)
                return call(*args, **kwargs)
            self._num_batches += 1
            return joined([part_call(*one, **words) for one, words in parts])

        return run

    def effect(self) -> tuple[bool, str]:
        """Return whether parts of batches were computed, and again in the backward."""
        reasons = [self._reason, *(call.reason for call in self._calls.values())]
        again = sum(call.num_recomputed for call in self._calls.values())
        parts = sum(call.num_calls for call in self._calls.values())
        if self._num_batches and again and not any(reasons):
            return True, f"{self._num_batches} batches in {parts} parts, {again} recomputed in the backward"
        return False, next(filter(None, reasons), "no training forward was seen")


def _reason_against(module: Any) -> str:
    from torch.nn.modules.batchnorm import _NormBase

    if unwrapped(module) is not module:
        return f"{type(module).__name__} expects one forward for each backward"
    for part in module.modules():
        if isinstance(part, _NormBase) and part.track_running_stats:
            return f"{type(part).__name__} would see the statistics of parts of the batch"
    return side_effect(module)


def split(args: Any, kwargs: Any, num_parts: int) -> list[tuple[Any, Any]]:
    """Return the arguments of each part: tensors that have the batch as their first dimension are cut.

    Raises:
        CannotSplit: there is no such tensor.
    """
    given = [each for each in tensors_in((args, kwargs)) if each.dim()]
    if not given:
        raise CannotSplit("the model is called without a tensor")
    size = given[0].shape[0]
    num = len(given[0].chunk(num_parts)) if size else 1

    def part(at: int) -> Callable[[Any], Any]:
        return lambda each: each.chunk(num_parts)[at] if each.dim() and each.shape[0] == size else each

    return [(map_tensors(args, part(at)), map_tensors(kwargs, part(at))) for at in range(num)]


def joined(outputs: list[Any]) -> Any:
    """Return the output of the whole batch.

    Raises:
        CannotSplit: something in it is no row for each sample: a loss.
    """
    import torch

    columns = [tensors_in(each) for each in outputs]
    if any(not each.dim() for each in columns[0]):
        raise CannotSplit("the model returns its own loss, which cannot be reweighed")
    rows = [len({each.shape[0] for each in column}) for column in columns]
    if len({len(column) for column in columns}) > 1 or any(num != 1 for num in rows):
        raise CannotSplit("the model returns something that has no row for each sample")
    whole = iter([torch.cat(parts) for parts in zip(*columns, strict=True)])
    return map_tensors(outputs[0], lambda _: next(whole))


def _require_same(module: Any, call: Any, given: Any, parts: list[Any]) -> None:
    """Demand that samples do not see each other: parts give what the whole gives, without dropout."""
    with _quietly(module):
        whole = tensors_in(call(*given[0], **given[1]))
        again = tensors_in(joined([call(*args, **kwargs) for args, kwargs in parts]))
    for one, other in zip(whole, again, strict=True):
        if one.shape != other.shape:
            raise CannotSplit("the model returns something that has no row for each sample")
        if (one.float() - other.float()).norm() > MAX_DIFFERENCE * one.float().norm():
            raise CannotSplit("the output of a sample depends on the others in its batch")


@contextmanager
def _quietly(module: Any) -> Iterator[None]:
    """Evaluate, keep no graph, and leave the random numbers as they are."""
    import torch

    training = [part for part in module.modules() if part.training]
    with torch.random.fork_rng(), torch.no_grad():
        for part in training:
            part.training = False
        try:
            yield
        finally:
            for part in training:
                part.training = True
