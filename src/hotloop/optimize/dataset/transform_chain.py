"""The chain of transforms that a data set applies: what of it is deterministic, from its beginning on.

A chain is an object of the data set with a list `transforms` that it calls one after the other: `Compose` of
torchvision, MONAI or albumentations, or the program's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hotloop.optimize.dataset.clocks import asks_for_time
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.samples import copy_of, same
from hotloop.optimize.loaders.dataset_state import state_of
from hotloop.probe.record.generators import GlobalGenerators

MAX_DEPTH = 3
"""A data set inside a data set (Subset) inside another."""
MAX_PARTS = 64
"""Data sets in a ConcatDataset; lists that are longer hold samples."""


class Held:
    """What a sample's value was when the chain was stopped; stands in the sample in its place.

    Attributes:
        value: after the deterministic prefix.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


class TransformChain:
    """A data set's chain of transforms, which can be stopped after its deterministic prefix.

    Args:
        chain: has `transforms`, a list.
    """

    def __init__(self, chain: Any) -> None:
        self._chain = chain
        self._given = chain.transforms
        self._transforms = list(chain.transforms)
        self.prefix = 0
        """So many transforms, from the first on, are deterministic."""

    @property
    def holder(self) -> Any:
        """The object that has the list."""
        return self._chain

    @property
    def suffix(self) -> Sequence[Any]:
        """The transforms that run each time."""
        return self._transforms[self.prefix :]

    def is_unchanged(self) -> bool:
        """Whether the program's chain is still the one that was looked at."""
        now = self._chain.transforms
        return len(now) == len(self._transforms) and all(
            a is b for a, b in zip(now, self._transforms, strict=True)
        )

    def find_prefix(self, dataset: Any, indices: Sequence[int]) -> None:
        """Run the chain on samples, transform by transform, until the first one that is not deterministic.

        Raises:
            CannotKeep: the data set does not simply put what the chain returns into its sample.
        """
        self.prefix = len(self._transforms)
        for index in indices:
            self._stop_at(0)
            try:
                value = held_in(dataset[index]).value
            finally:
                self._go_on()
            for number, transform in enumerate(self._transforms[: self.prefix]):
                if not _is_deterministic(transform, value):
                    self.prefix = number
                    break
                value = transform(copy_of(value))

    def sample(self, dataset: Any, index: int) -> Any:
        """Return a sample, with a `Held` where the chain was stopped after its prefix."""
        self._stop_at(self.prefix)
        try:
            return dataset[index]
        finally:
            self._go_on()

    def finish(self, value: Any) -> Any:
        """Run the rest of the chain."""
        for transform in self.suffix:
            value = transform(value)
        return value

    def _stop_at(self, number: int) -> None:
        self._chain.transforms = [*self._transforms[:number], Held]

    def _go_on(self) -> None:
        self._chain.transforms = self._given


def chain_of(dataset: Any) -> TransformChain:
    """Return the one chain of transforms of a data set.

    Raises:
        CannotKeep: it has none, or several.
    """
    chains = {id(chain): chain for chain in _chains(dataset, MAX_DEPTH)}
    if not chains:
        raise CannotKeep("it holds no chain of transforms (an object with a list `transforms`)")
    if len(chains) > 1:
        raise CannotKeep(f"it holds {len(chains)} chains of transforms")
    return TransformChain(next(iter(chains.values())))


def held_in(sample: Any) -> Held:
    """Return the one `Held` in a sample.

    Raises:
        CannotKeep: there is none, or there are several.
    """
    found = list(_held(sample))
    if len(found) != 1:
        raise CannotKeep("what its transforms return is not simply a part of its samples")
    return found[0]


def put_in(sample: Any, value: Any) -> Any:
    """Return the sample with the value in the place of the `Held`; everything else is copied."""
    if isinstance(sample, Held):
        return value
    kind = type(sample)
    if kind in {tuple, list}:
        return kind(put_in(part, value) for part in sample)
    if kind is dict:
        return {key: put_in(part, value) for key, part in sample.items()}
    return copy_of(sample)


def _held(sample: Any) -> Iterator[Held]:
    if isinstance(sample, Held):
        yield sample
    elif type(sample) in {tuple, list}:
        for part in sample:
            yield from _held(part)
    elif type(sample) is dict:
        yield from _held(list(sample.values()))


def _chains(value: Any, depth: int) -> Iterator[Any]:
    """Yield the chains that an object holds, and those of the data sets and pairs of transforms in it."""
    for part in getattr(value, "__dict__", {}).values():
        if callable(part) and isinstance(getattr(part, "transforms", None), list):
            yield part
        elif depth and isinstance(part, list):
            for each in part[:MAX_PARTS]:
                if hasattr(each, "__getitem__"):
                    yield from _chains(each, depth - 1)
        elif depth and (hasattr(part, "__getitem__") or callable(part)) and hasattr(part, "__dict__"):
            yield from _chains(part, depth - 1)


def _is_deterministic(transform: Any, value: Any) -> bool:
    """Whether a transform gives the same again, draws nothing, asks for no time and stays as it is."""
    before, state = GlobalGenerators(), state_of(transform)
    try:
        first = transform(copy_of(value))
        results: list[Any] = []
        clock = asks_for_time(lambda: results.append(transform(copy_of(value))))
        return (
            clock is None and same(first, results[0]) and not before.drawn() and state == state_of(transform)
        )
    finally:
        before.restore()
