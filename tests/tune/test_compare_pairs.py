"""Pairs of `compare` end with their time: a slow program gets fewer rounds, and never too few."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hotloop.model.tuning import Contention
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.tune.compare import pairs
from hotloop.tune.compare.program import Program
from hotloop.tune.design.block_length import Blocks

from .simulated import observation

BLOCK_S = 4.0


class FakeArm:
    interrupted = False

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock
        self.run = type("Run", (), {"pid": os.getpid()})()

    def advance(self, num_steps: int, *, discard: int, timeout_s: float) -> float:
        self._clock[0] += BLOCK_S
        return BLOCK_S


class QuietMachine:
    """In place of the watch: repeats nothing."""

    num_noisy = 0

    def __init__(self, *_: Any) -> None: ...

    def block(self, run: Any, pid: int) -> Any:
        return run()

    def report(self) -> Contention:
        return Contention(num_blocks=8, num_void=0, num_noisy=self.num_noisy, max_foreign_share=0.4)


@pytest.mark.parametrize(("until", "num"), [(0.0, MIN_BLOCKS), (45.0, 5), (1e9, pairs.ROUNDS)])
def test_a_pair_ends_with_its_time(until: float, num: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(pairs.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(pairs, "ContentionWatch", QuietMachine)
    one = Program(name="a", words=(), argv=(), folder=Path(), observation=observation())
    shape = Blocks(num_steps=2, discard=0, warm_steps=1, max_rounds=None)
    arms: Any = [FakeArm(clock), FakeArm(clock)]
    found, _ = pairs._rounds(arms, (one, one), (shape, shape), print, until)
    assert found == ((BLOCK_S / 2, BLOCK_S / 2),) * num


def test_a_round_that_an_epoch_fell_into_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class BetweenEpochs(FakeArm):
        def advance(self, num_steps: int, *, discard: int, timeout_s: float) -> float:
            spent = super().advance(num_steps, discard=discard, timeout_s=timeout_s)
            self._clock[1] += 1
            self.interrupted = self._clock[1] == 9
            return 30.0 if self.interrupted else spent

    monkeypatch.setattr(pairs, "ContentionWatch", QuietMachine)
    one = Program(name="a", words=(), argv=(), folder=Path(), observation=observation())
    shape = Blocks(num_steps=2, discard=0, warm_steps=1, max_rounds=None, trains=True)
    clock = [0.0, 0.0]
    arms: Any = [BetweenEpochs(clock), BetweenEpochs(clock)]
    found, _ = pairs._rounds(arms, (one, one), (shape, shape), print, 1e9)
    assert found == ((BLOCK_S / 2, BLOCK_S / 2),) * (pairs.ROUNDS - 1)


@pytest.mark.parametrize(("num_noisy", "share"), [(5, 0.4), (4, None)])
def test_a_machine_that_was_busy_in_most_blocks_is_told(
    num_noisy: int, share: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class BusyMachine(QuietMachine):
        def block(self, run: Any, pid: int) -> Any:
            self.num_noisy = min(self.num_noisy + 1, num_noisy)
            return run()

    monkeypatch.setattr(pairs, "ContentionWatch", BusyMachine)
    one = Program(name="a", words=(), argv=(), folder=Path(), observation=observation())
    shape = Blocks(num_steps=2, discard=0, warm_steps=1, max_rounds=None)
    arms: Any = [FakeArm([0.0]), FakeArm([0.0])]
    assert pairs._rounds(arms, (one, one), (shape, shape), print, 1e9)[1] == share
