"""Which operations compute the same again from the same values: value numbering, while the program runs.

A value has the number of the operation and of the values that it was computed from. Two tensors with one number hold
the same: how they came to be is the same, whatever memory they lie in. Numbers of storages are those of their
addresses, which a weak reference keeps from being given to others; the memory itself is let go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

_PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
_COPIES = frozenset(
    {
        "clone", "_to_copy", "copy_", "detach", "detach_", "alias", "lift_fresh", "lift_fresh_copy",
        "_local_scalar_dense", "_unsafe_view", "zero_", "fill_",
    }
)  # fmt: skip
"""Operations that are there for the memory: a second copy of a value has its own purpose."""
_DROPOUT = frozenset({"dropout_p", "dropout", "train", "training"})


class Kind(NamedTuple):
    """What is known of an operation before it is called."""

    name: str
    writes: tuple[tuple[int, str], ...]
    """Positions and names of the arguments that it writes to."""
    unknown: bool
    """Its result is random, or whatever lay in memory."""
    stills: tuple[tuple[int, str, Any], ...]
    """Positions, names and defaults of the arguments that make it draw nothing if they are 0 or False."""
    counts: bool
    """To do it again is work: it is no view, no copy."""


@lru_cache(maxsize=4096)
def kind_of(func: Any) -> Kind:
    """Return what an operation is, from its schema."""
    schema, name = func._schema, func._overloadpacket.__name__
    writes = tuple(
        (at, argument.name)
        for at, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )
    views = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
    random = torch.Tag.nondeterministic_seeded in func.tags or "empty" in name
    stills = tuple(
        (at, argument.name, argument.default_value)
        for at, argument in enumerate(schema.arguments)
        if argument.name in _DROPOUT
    )
    return Kind(name, writes, random, stills, not views and name not in _COPIES)


def is_unknown(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether a result is not told by the arguments: attention and recurrent layers are random with dropout only."""
    kind = kind_of(func)
    if not kind.unknown:
        return False
    given = (args[at] if at < len(args) else kwargs.get(name, default) for at, name, default in kind.stills)
    return not any(each is not None and not each for each in given)


def tensors_in(value: Any, depth: int = 3) -> Iterator[Any]:
    """Yield the tensors among arguments that have memory of their own; sparse ones have none."""
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif depth and isinstance(value, list | tuple):
        for each in value:
            yield from tensors_in(each, depth - 1)
    elif depth and isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each, depth - 1)


class Before(NamedTuple):
    """When an operation was computed before.

    Attributes:
        in_step: earlier in this step.
        first: the place of the first time in this step.
        constant: in an earlier step.
        places: those in the first step of the window, told once.
    """

    in_step: bool
    first: int
    constant: bool
    places: list[int]


@dataclass
class _Computed:
    numbers: list[int]
    step: int
    first: int
    began: int
    places: list[int]


class Unknown(Exception):  # noqa: N818 - an answer, not an error
    """An argument has no number."""


class ValueNumbers:
    """Numbers the values of a few steps."""

    def __init__(self) -> None:
        self._held: dict[int, StorageWeakRef] = {}
        self._writes: dict[int, int] = {}
        self._numbers: dict[Any, int] = {}
        self._computed: dict[Any, _Computed] = {}
        """By operation and numbers of its arguments."""
        self._next = 0
        self.step = 0
        self.passes = 0
        """Backward passes so far: each frees the graph of what was computed before it."""

    def storage(self, tensor: Any) -> int:
        """Return the number of a tensor's memory."""
        storage = tensor.untyped_storage()
        number = int(storage._cdata)
        if number not in self._held:
            self._held[number] = StorageWeakRef(storage)
        return number

    def key(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Return what an operation computes, to be given to `computed`; None: nobody can tell."""
        if is_unknown(func, args, kwargs):
            return None
        try:
            return func, self._frozen(args), self._frozen(kwargs)
        except Unknown:
            return None

    def written(self, func: Any, args: Any, kwargs: Any) -> None:
        """Note that the memory of arguments has changed."""
        for at, name in kind_of(func).writes:
            value = args[at] if at < len(args) else kwargs.get(name)
            for tensor in tensors_in(value):
                number = self.storage(tensor)
                self._writes[number] = self._writes.get(number, 0) + 1

    def computed(self, key: Any, out: Any, place: int) -> Before:
        """Give numbers to results; return when they were computed before.

        Args:
            key: of the operation; None: nobody can tell.
            out: its result.
            place: the number of this operation.
        """
        known = self._computed.get(key) if key is not None else None
        tensors = list(tensors_in(out))
        if known is None or len(known.numbers) != len(tensors):
            numbers = [self._number(each) for each in tensors]
            if key is not None:
                self._computed[key] = _Computed(numbers, self.step, place, self.step, [place])
            return Before(in_step=False, first=place, constant=False, places=[])
        for tensor, number in zip(tensors, known.numbers, strict=True):
            self._numbers.setdefault(self._place(tensor), number)
        in_step, constant = known.step == self.step, known.began < self.step
        if not in_step:
            known.step, known.first = self.step, place
        if constant:
            places, known.places = known.places, []
            return Before(in_step, known.first, constant, places)
        known.places.append(place)
        return Before(in_step, known.first, constant, [])

    def _frozen(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.layout is not torch.strided:
                raise Unknown
            return "tensor", self._number(value)
        if isinstance(value, _PLAIN):
            return type(value), value
        if isinstance(value, list | tuple):
            return tuple(self._frozen(each) for each in value)
        if isinstance(value, dict):
            return tuple((name, self._frozen(each)) for name, each in sorted(value.items()))
        raise Unknown

    def _number(self, tensor: Any) -> int:
        place = self._place(tensor)
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = self._next
            self._next += 1
        return number

    def _place(self, tensor: Any) -> Any:
        """Return where a value lies; what is trained lies elsewhere after each backward pass, whoever writes it.

        What is computed of it before and after a pass is computed twice for a reason: the pass freed the graph.
        """
        storage = self.storage(tensor)
        trained = (self.step, self.passes) if tensor.requires_grad and tensor.is_leaf else None
        writes = self._writes.get(storage, 0)
        shape, strides = tuple(tensor.shape), tensor.stride()
        return storage, writes, trained, tensor.storage_offset(), shape, strides, tensor.dtype
