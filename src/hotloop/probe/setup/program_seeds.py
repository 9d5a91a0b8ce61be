"""Seeds that the program gives itself: kept in the observed run, given again in trials.

A program that seeds with the time, with its process id or with `os.urandom` is another training in every run, and
so is one that takes fresh entropy (`default_rng()`, `torch.seed()`). The observed run's seeds are kept, in order; in
a trial a seed that was not seen there is replaced by the one whose turn it is. A constant seed was seen: it stays.

Not pinned: `torch.Generator().seed()` and `random.Random()` (types that cannot be patched), other threads' order of
execution.
"""

from __future__ import annotations

import functools
import hashlib
import os
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

from hotloop.probe.probe import Probe
from hotloop.probe.process.rank import rank_and_world

MAX_SEEDS = 256
"""A program that seeds in every step is as good as one that seeds once."""
_LARGEST = 2**63 - 1


class ProgramSeeds:
    """What the program seeds with.

    Args:
        given: seeds of the observed run, in order; None: this is the observed run.
        entropy: what stands in for fresh entropy in a trial; None: the system's own.
    """

    def __init__(self, given: Sequence[int] | None, entropy: int | None) -> None:
        self.seen: list[int] = []
        self._given = list(given) if given is not None else None
        self._turn = 0
        self._replaced: dict[int, int] = {}
        self._entropy = entropy
        self._draws = 0
        self._pid = os.getpid()

    def seed(self, value: Any) -> Any:
        """Return the seed to use where the program gives this one; what is no whole number stays as it is."""
        try:
            number = int(value) & _LARGEST if int(value) > _LARGEST else int(value)
        except (TypeError, ValueError):
            return value
        if self._given is None:
            if number not in self.seen and len(self.seen) < MAX_SEEDS:
                self.seen.append(number)
            return value
        if os.getpid() != self._pid:
            return value
        if number in self._given:
            self._turn = max(self._turn, self._given.index(number) + 1)
            return value
        if number not in self._replaced and self._turn < len(self._given):
            self._replaced[number] = self._given[self._turn]
            self._turn += 1
        return self._replaced.get(number, value)

    def fresh(self, bits: int) -> int | None:
        """Return what stands in for so many bits of fresh entropy; None: the system's own is wanted."""
        base = self._entropy if os.getpid() == self._pid else _worker_seed()
        if base is None or self._entropy is None:
            return None
        self._draws += 1
        digest = hashlib.shake_128(f"{base} {self._draws}".encode()).digest(bits // 8 + 1)
        return int.from_bytes(digest, "big") >> (8 - bits % 8)


def install(probe: Probe) -> None:
    """Patch where programs seed: torch, Python, and NumPy where it is there."""
    import torch

    config = probe.config
    rank, _ = rank_and_world()
    given = config.program_seeds if not rank else ()  # only the first rank's were kept
    seeds = ProgramSeeds(given, config.seed)
    probe.facts.seeds = seeds.seen
    for module in (torch, torch.random):
        _patch(module, "manual_seed", lambda original: _seeding(original, seeds))
        _patch(module, "seed", lambda original: _fresh_torch_seed(original, seeds))
    _patch(random, "seed", lambda original: _seeding(original, seeds))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        _patch(numpy.random, "seed", lambda original: _seeding(original, seeds))
        _patch(numpy.random, "default_rng", lambda original: _seeding(original, seeds))
        _patch(numpy.random.bit_generator, "randbits", lambda original: _bits(original, seeds))


def _patch(owner: Any, name: str, made: Callable[[Any], Any]) -> None:
    original = getattr(owner, name, None)
    if callable(original):
        setattr(owner, name, made(original))


def _seeding(original: Any, seeds: ProgramSeeds) -> Any:
    """Return a function that seeds: its first argument is the seed, None is fresh entropy."""

    @functools.wraps(original)
    def seed(*args: Any, **kwargs: Any) -> Any:
        if args and args[0] is not None:
            return original(seeds.seed(args[0]), *args[1:], **kwargs)
        name = next((name for name in ("seed", "a") if kwargs.get(name) is not None), None)
        if name is not None:
            return original(*args, **{**kwargs, name: seeds.seed(kwargs[name])})
        fresh = seeds.fresh(32)
        return original(*args, **kwargs) if fresh is None else original(fresh)

    return seed


def _fresh_torch_seed(original: Any, seeds: ProgramSeeds) -> Any:
    import torch

    @functools.wraps(original)
    def seed() -> int:
        fresh = seeds.fresh(63)
        if fresh is None:
            number: int = original()
            return number
        torch.manual_seed(fresh)
        return fresh

    return seed


def _bits(original: Any, seeds: ProgramSeeds) -> Any:
    def randbits(num: int) -> int:
        fresh = seeds.fresh(num)
        return int(original(num)) if fresh is None else fresh

    return randbits


def _worker_seed() -> int | None:
    """The seed that torch gave to this loader worker, which comes from the program's own; None: it is none."""
    import torch.utils.data

    info = torch.utils.data.get_worker_info()
    return None if info is None else int(info.seed)
