"""Whether the samples of a batch do not see each other, tried out on the first batch before it is seen in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from typing import Any

from hotloop.optimize.catalogue.memory.gradient_accumulation.batch import (
    Batch,
    CannotSplit,
    joined,
    require_rows,
    require_same_constants,
)
from hotloop.optimize.comparison.compare import LARGEST, ROUNDINGS
from hotloop.optimize.program.containers import map_tensors, tensors_in
from hotloop.optimize.recomputation.buffers import changed, exchanged, named_buffers
from hotloop.optimize.recomputation.copies import clone, detached_copy
from hotloop.optimize.recomputation.random_state import RandomState

MAX_LIMIT = 0.02
"""Of a row's size, that rounding may change: five roundings to bfloat16 (2**-8)."""
DEPENDS = "the output of a sample depends on the others in its batch"


class CannotTell(CannotSplit):
    """This batch does not tell it; a later one may."""


class Trial:
    """Calls a model with the batch, as it is and changed. Nothing of it is seen by the program.

    Args:
        module: the model.
        call: its call.
        batch: the first one.
    """

    def __init__(self, module: Any, call: Callable[..., Any], batch: Batch) -> None:
        self._module = module
        self._call = call
        self._batch = batch
        self._random = RandomState([*module.parameters(), *module.buffers(), *tensors_in(batch.given)])

    def run(self, bounds: list[tuple[int, int]]) -> None:
        """Demand that the parts of a batch may be computed one by one.

        Args:
            bounds: of the parts.

        Raises:
            CannotTell: the samples, or their outputs, are too much alike.
            CannotSplit: they may not; with the reason.
        """
        with _apart(self._module), _without_gradient():
            try:
                is_random = self._exchange_others(bounds)
                with _evaluating(self._module) if is_random else ExitStack():
                    self._compare_parts(bounds)
            finally:
                self._random.restore()

    def _exchange_others(self, bounds: list[tuple[int, int]]) -> bool:
        """Demand that a part's output stays when all others are exchanged; return whether random numbers are drawn.

        It stays to the last bit: shapes, random numbers and kernels are the same.
        """
        import torch

        num_rows = self._batch.num_rows
        whole = self._run(self._batch.mapped(lambda each: each))
        is_random = self._random.has_moved()
        require_rows(whole, num_rows)
        for begin, end in (bounds[0], bounds[-1]):
            order = [at if begin <= at < end else begin + at % (end - begin) for at in range(num_rows)]
            if not any(_differs(each, order) for each in self._rows()):
                raise CannotTell("the samples of the batch are all the same")
            other = self._run(self._batch.mapped(itemgetter(order)))
            require_rows(other, num_rows)
            require_same_constants(whole, other)
            for one, changed_one in zip(tensors_in(whole), tensors_in(other), strict=True):
                if not torch.equal(one[begin:end], changed_one[begin:end]):
                    raise CannotSplit(DEPENDS)
        return is_random

    def _compare_parts(self, bounds: list[tuple[int, int]]) -> None:
        """Demand that the parts give what the whole gives: neither numbers nor positions of rows matter."""
        whole = self._run(self._batch.mapped(lambda each: each))
        if self._random.has_moved():
            raise CannotSplit(
                "the model draws random numbers in evaluation, too: its parts cannot be compared"
            )
        again = joined([self._run(self._batch.part(*each)) for each in bounds], bounds)
        require_same_constants(whole, again)
        coarse = _coarse(self._module)
        for one, other in zip(tensors_in(whole), tensors_in(again), strict=True):
            _require_same_rows(one, other, coarse)

    def _run(self, given: Any) -> Any:
        """Call it with copies, and demand that it leaves them and its buffers as they are."""
        args, kwargs = map_tensors(given, detached_copy)
        versions = [each._version for each in tensors_in((args, kwargs))]
        buffers = [(part, name, clone(buffer)) for part, name, buffer in named_buffers(self._module)]
        self._random.restore()
        output = self._call(*args, **kwargs)
        if versions != [each._version for each in tensors_in((args, kwargs))]:
            raise CannotSplit("the model changes its inputs in place")
        for part, name, _ in changed(buffers):
            raise CannotSplit(f"{type(part).__name__}.{name} would see the statistics of parts of the batch")
        return output

    def _rows(self) -> list[Any]:
        tensors = tensors_in(self._batch.given)
        return [each for each, has in zip(tensors, self._batch.has_rows, strict=True) if has]


def _differs(tensor: Any, order: list[int]) -> bool:
    return not bool((tensor[order] == tensor).all())


def _require_same_rows(one: Any, other: Any, coarse: float) -> None:
    """Demand that rows differ by rounding alone; whether they do has to show beside what rows differ by anyway."""
    import torch

    if one.shape != other.shape or one.dtype is not other.dtype:
        raise CannotSplit("the model returns something that has no row for each sample")
    if not one.is_floating_point():
        if not torch.equal(one, other):
            raise CannotSplit(DEPENDS)
        return
    limit = min(ROUNDINGS * max(torch.finfo(one.dtype).eps, coarse), MAX_LIMIT)
    typical, spread = _typical(one), _typical(_wide(one) - _wide(one).mean(0))
    if not typical < float("inf"):
        raise CannotTell("the model's output is not finite")
    if spread * LARGEST <= limit * typical:
        raise CannotTell("the outputs of the samples are too much alike to be compared")
    allowed = limit * _sizes(one).clamp(min=LARGEST * typical)
    if not bool((_sizes(_wide(one) - _wide(other)) <= allowed).all()):
        raise CannotSplit(DEPENDS)


def _sizes(rows: Any) -> Any:
    return _wide(rows).reshape(len(rows), -1).norm(dim=1)


def _wide(tensor: Any) -> Any:
    import torch

    return tensor if tensor.dtype is torch.float64 else tensor.float()


def _typical(rows: Any) -> float:
    return float(_sizes(rows).square().mean().sqrt())


def _coarse(module: Any) -> float:
    """Return the unit in the last place of the coarsest type that the model computes in."""
    import torch

    floating = [each for each in module.parameters() if each.is_floating_point()]
    types = {each.dtype for each in floating}
    types |= {
        torch.get_autocast_dtype(kind)
        for kind in {each.device.type for each in floating}
        if torch.is_autocast_enabled(kind)
    }
    tf32 = 2.0**-16 if any(each.is_cuda for each in floating) else 0.0  # ten bits; errors of products cancel
    return max(tf32, *(float(torch.finfo(each).eps) for each in types), 0.0)


def _apart(module: Any) -> Any:
    """Return a context in which the model writes to copies of its buffers."""
    return exchanged(list(named_buffers(module)))


@contextmanager
def _without_gradient() -> Iterator[None]:
    """Keep no graph; nor, for autocast, weights that were cast without one."""
    import torch

    caches = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_autocast_cache_enabled(caches)


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Without dropout."""
    training = [part for part in module.modules() if part.training]
    try:
        for part in training:
            part.training = False
        yield
    finally:
        for part in training:
            part.training = True
