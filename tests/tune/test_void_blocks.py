"""Blocks that others disturb are repeated: within limits, and never beyond the program's own end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hotloop.machine.environment.contention import ForeignLoad, LoadSnapshot
from hotloop.tune.trials import void_blocks as quiet
from hotloop.tune.trials.void_blocks import MAX_REPEATS, ContentionWatch


class _Load(ForeignLoad):
    """Says for one interval after the other which share of the machine others took."""

    def __init__(self, shares: Sequence[float], afterwards: float) -> None:
        super().__init__()
        self._shares = iter(shares)
        self._afterwards = afterwards
        self._ticks = self._busy = 0

    def snapshot(self, pids: tuple[int, ...] = ()) -> LoadSnapshot:
        snapshot = LoadSnapshot(
            total_ticks=self._ticks,
            busy_ticks=self._busy,
            steal_ticks=0,
            processes={},
            ours=frozenset(),
            throttled_s=None,
            thermal_events=None,
        )
        self._ticks += 1000
        self._busy += round(1000 * next(self._shares, self._afterwards))
        return snapshot


class _Blocks:
    num = 0

    def run(self) -> int:
        self.num += 1
        return self.num


def _watchman(*shares: float, afterwards: float = 0.0) -> ContentionWatch:
    return ContentionWatch(lambda _: None, 10, _Load(shares, afterwards), lambda _: None)


def test_a_quiet_block_is_kept() -> None:
    watchman, blocks = _watchman(0.02), _Blocks()
    assert watchman.block(blocks.run, 1) == 1
    assert watchman.report().num_void == 0


def test_a_disturbed_block_is_repeated_once_it_is_quiet() -> None:
    watchman, blocks = _watchman(0.5), _Blocks()
    assert watchman.block(blocks.run, 1) == 2
    report = watchman.report()
    assert (report.num_blocks, report.num_void, report.num_noisy) == (2, 1, 0)
    assert report.max_foreign_share == pytest.approx(0.5)


def test_a_machine_that_is_never_quiet_does_not_eat_the_budget() -> None:
    watchman, blocks = _watchman(afterwards=0.6), _Blocks()
    assert watchman.block(blocks.run, 1) == MAX_REPEATS + 1
    for _ in range(3):
        watchman.block(blocks.run, 1)
    report = watchman.report()
    assert report.num_void == 2, "a fifth of the set's ten blocks"
    assert report.num_noisy == 4


@pytest.mark.parametrize("spare", [0, 1])
def test_no_more_is_repeated_than_the_program_has_steps_for(spare: int) -> None:
    watchman, blocks = _watchman(afterwards=0.6), _Blocks()
    assert watchman.block(blocks.run, 1, spare) == spare + 1
    assert watchman.report().num_noisy == 1


@pytest.mark.parametrize(("shares", "waited_s", "tells"), [([0.5] * 9, 2.5, True), ([], 0.25, False)])
def test_a_set_waits_for_others_to_leave(shares: list[float], waited_s: float, tells: bool) -> None:
    pauses: list[float] = []
    said: list[str] = []
    # Of two looks each the first one begins an interval, the second one ends it.
    load = _Load([share for one in shares for share in (one, one)], 0.0)
    assert ContentionWatch(said.append, 10, load, pauses.append).wait_for_quiet(20.0)
    assert sum(pauses) == pytest.approx(waited_s)
    assert bool(said) == tells


def test_nobody_is_waited_for_longer_than_that() -> None:
    pauses: list[float] = []
    assert not ContentionWatch(lambda _: None, 10, _Load((), 0.6), pauses.append).wait_for_quiet(5.0)
    assert sum(pauses) == pytest.approx(5.0)


def test_the_wait_for_quiet_ends_early_when_it_is() -> None:
    pauses: list[float] = []
    watchman = ContentionWatch(lambda _: None, 10, _Load([0.5, 0.5], 0.0), pauses.append)
    watchman.block(_Blocks().run, 1)
    assert sum(pauses) < quiet.WAIT_FOR_QUIET_S
