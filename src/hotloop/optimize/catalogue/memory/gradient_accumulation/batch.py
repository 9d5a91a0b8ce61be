"""A batch in parts: which of the arguments have a row for each sample, and outputs put together again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotloop.optimize.program.containers import map_tensors, tensors_in
from hotloop.optimize.recomputation.plain_values import NotPlain, leaves

Given = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of a call, by place and by keyword."""


class CannotSplit(Exception):  # noqa: N818 - an answer, not an error
    """With the reason why a batch cannot be seen in parts."""


@dataclass(frozen=True)
class Batch:
    """The arguments of a call.

    Attributes:
        given: the arguments.
        has_rows: for each tensor in them, whether it has a row for each sample.
        num_rows: samples.
    """

    given: Given
    has_rows: tuple[bool, ...]
    num_rows: int

    def mapped(self, change: Callable[[Any], Any]) -> Given:
        """Return the arguments with `change` applied to each tensor that has a row for each sample."""
        flags = iter(self.has_rows)
        args, kwargs = map_tensors(self.given, lambda each: change(each) if next(flags) else each)
        return args, kwargs

    def bounds(self, num_parts: int) -> list[tuple[int, int]]:
        """Return the first row of each part, and the one after its last."""
        step = max(1, -(-self.num_rows // num_parts))
        return [(at, min(at + step, self.num_rows)) for at in range(0, self.num_rows, step)] or [(0, 0)]

    def part(self, begin: int, end: int) -> Given:
        """Return the arguments of some rows."""
        return self.mapped(lambda each: each[begin:end])


def layout(given: Given) -> Any:
    """Return what calls have in common whose tensors mean the same."""
    args, kwargs = given
    return len(args), tuple(kwargs), tuple((each.dim(), each.dtype) for each in tensors_in(given))


def batch_of(given: Given, has_rows: tuple[bool, ...] | None) -> Batch:
    """Return the batch of a call.

    Args:
        given: its arguments.
        has_rows: of an earlier call of the same layout; None: the first dimension of the first tensor tells it.

    Raises:
        CannotSplit: it has no rows, or something in it belongs to samples and is no tensor.
    """
    tensors = _plain_tensors(given)
    if has_rows is None:
        size = next((each.shape[0] for each in tensors if each.dim()), None)
        has_rows = tuple(each.dim() > 0 and each.shape[0] == size for each in tensors)
    sizes = {each.shape[0] for each, has in zip(tensors, has_rows, strict=True) if has}
    if not sizes:
        raise CannotSplit("the model is called without a tensor")
    if len(sizes) > 1:
        raise CannotSplit("the model is called with tensors of different numbers of rows")
    size = sizes.pop()
    if _has_list(given[0], size) or _has_list(tuple(given[1].values()), size):
        raise CannotSplit("the model is given a list with an entry for each sample")
    return Batch(given, has_rows, size)


def _plain_tensors(given: Given) -> list[Any]:
    from torch.nn.utils.rnn import PackedSequence

    if any(isinstance(each, PackedSequence) for each in (*given[0], *given[1].values())):
        raise CannotSplit("the model is given a PackedSequence")
    try:
        leaves(given)
    except NotPlain as value:
        raise CannotSplit(f"the model is given a {value}") from None
    return tensors_in(given)


def _has_list(values: Any, size: int) -> bool:
    """Whether lists, or tuples, among some values have an entry for each sample."""
    import torch

    return size > 1 and any(
        (len(each) == size and not all(isinstance(item, torch.Tensor) for item in each))
        or _has_list(each, size)
        for each in values
        if isinstance(each, (list, tuple))
    )


def require_rows(output: Any, num_rows: int) -> None:
    """Demand that an output has a row for each sample.

    Raises:
        CannotSplit: something in it has none: a loss.
    """
    tensors = _outputs(output)[0]
    if not tensors:
        raise CannotSplit("the model returns no tensor")
    if any(not each.dim() for each in tensors):
        raise CannotSplit("the model returns its own loss, which cannot be reweighed")
    if any(each.shape[0] != num_rows for each in tensors):
        raise CannotSplit("the model returns something that has no row for each sample")


def joined(outputs: list[Any], bounds: list[tuple[int, int]]) -> Any:
    """Return the output of the whole batch.

    Args:
        outputs: of each part.
        bounds: of each part.

    Raises:
        CannotSplit: something in it is no row for each sample.
    """
    import torch

    for output, (begin, end) in zip(outputs, bounds, strict=True):
        require_rows(output, end - begin)
        require_same_constants(output, outputs[0])
    columns = [tensors_in(each) for each in outputs]
    whole = iter([torch.cat(parts) for parts in zip(*columns, strict=True)])
    return map_tensors(outputs[0], lambda _: next(whole))


def require_same_constants(one: Any, other: Any) -> None:
    """Demand that two outputs have as many tensors, and in all else are equal.

    Raises:
        CannotSplit: they are not.
    """
    (tensors, constants), (other_tensors, other_constants) = _outputs(one), _outputs(other)
    if len(tensors) != len(other_tensors) or constants != other_constants:
        raise CannotSplit("the model returns values that differ between parts of a batch")


def _outputs(output: Any) -> tuple[list[Any], list[Any]]:
    try:
        return leaves(output)
    except NotPlain as value:
        raise CannotSplit(f"the model returns a {value}") from None
