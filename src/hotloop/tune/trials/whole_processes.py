"""Arms that have no room beside one another: whole processes, one alive at a time, in ABBA order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hotloop.tune.executor import ArmRecord

Lived = tuple[Sequence[float], ArmRecord]
"""Seconds a step of each block that a process ran, and what it did."""


def in_abba_order(
    num_arms: int, num_rounds: int, live: Callable[[int, int], Lived]
) -> tuple[tuple[tuple[float, ...], ...], tuple[ArmRecord, ...]]:
    """Return the rounds, and the record of each arm's first process.

    Half of the rounds come from processes in order, half from fresh ones in the opposite order, so that a machine that
    becomes warmer or busier does the same to every arm.

    Args:
        num_arms: arms of the set.
        num_rounds: rounds wanted.
        live: starts an arm, runs so many blocks, ends it.
    """
    half = (num_rounds + 1) // 2
    there = [live(index, half) for index in range(num_arms)]
    back = [live(index, num_rounds - half) for index in reversed(range(num_arms)) if num_rounds > half]
    rounds = [*_rounds(there), *_rounds(back[::-1])]
    return tuple(rounds), tuple(record for _, record in there)


def _rounds(lived: Sequence[Lived]) -> list[tuple[float, ...]]:
    return list(zip(*(blocks for blocks, _ in lived), strict=True)) if lived else []
