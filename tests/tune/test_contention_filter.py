"""Which sets of a proof show the program as its user runs it."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.model.optimization import Candidate, Effect
from hotloop.model.tuning import Contention
from hotloop.stats.quietness import FAIR_SHARE
from hotloop.tune.confirm.contention_filter import ContentionFilter
from hotloop.tune.confirm.standing import ConfirmedSets
from hotloop.tune.executor import ArmRecord, SetOrder, SetRecord
from hotloop.tune.verdict.baseline import Originals

PLAN = (Candidate(name="a"),)
ORDER = SetOrder(plans=((), PLAN), max_rounds=6)
USUAL_S = 0.01


def _set(original_s: float, ratio: float, *, num_beside: int = 0) -> SetRecord:
    """Six rounds, the first ones of them beside others."""
    return SetRecord(
        rounds=((original_s, original_s / ratio),) * 6,
        arms=(
            ArmRecord(step_s=original_s),
            ArmRecord(step_s=original_s / ratio, effects=(Effect("a", True, "it acts"),)),
        ),
        contention=Contention(
            num_blocks=6, num_void=0, num_noisy=num_beside, max_foreign_share=0.5 if num_beside else None
        ),
        aside=tuple(range(num_beside)),
        noisy=tuple(range(num_beside)),
    )


def _sets(*records: SetRecord) -> ConfirmedSets:
    originals = Originals()
    sets = ConfirmedSets(originals, ContentionFilter(originals, USUAL_S))
    for record in records:
        originals.add(ORDER, record)
        sets.add(ORDER, record, ORDER.plans)
    return sets


def test_sets_of_the_program_as_it_is_run_outvote_those_that_others_made_longer() -> None:
    seen = _sets(_set(0.2, 14.0, num_beside=6), _set(USUAL_S, 1.1), _set(USUAL_S, 1.1)).standing(PLAN)
    assert seen is not None
    assert (seen.num_sets, seen.beside) == (2, None)
    assert seen.speed == pytest.approx(1.1)


def test_quiet_rounds_are_enough_of_a_set() -> None:
    seen = _sets(_set(0.2, 1.1, num_beside=3)).standing(PLAN)
    assert seen is not None
    assert seen.beside is None


@pytest.mark.parametrize(("slower", "told"), [(0.9 * FAIR_SHARE, True), (1.1 * FAIR_SHARE, False)])
def test_a_fair_share_leaves_the_program_what_it_is(slower: float, told: bool) -> None:
    seen = _sets(_set(slower * USUAL_S, 1.1, num_beside=6)).standing(PLAN)
    assert seen is not None
    assert (seen.beside is None) == told


def test_it_is_held_to_the_slowest_that_it_was_alone() -> None:
    """A machine may run at several speeds by itself."""
    beside = _set(3.5 * USUAL_S, 1.1, num_beside=6)
    for quiet_s, told in ((USUAL_S, False), (2 * USUAL_S, True)):
        originals = Originals()
        originals.add(ORDER, _set(quiet_s, 1.0))
        found = ContentionFilter(originals, USUAL_S).beside(ORDER, beside, PLAN)
        assert (found is None) == told


def test_where_nothing_is_known_of_it_alone_a_set_counts() -> None:
    assert ContentionFilter(Originals(), None).beside(ORDER, _set(0.2, 14.0, num_beside=6), PLAN) is None


@pytest.mark.parametrize(
    ("num_beside", "busy", "share", "told"),
    [(0, False, 0.5, True), (4, False, 0.5, False), (4, True, 0.5, True), (4, False, None, True)],
)
def test_what_gains_what_others_take_needs_quiet_sets(
    num_beside: int, busy: bool, share: float | None, told: bool
) -> None:
    """Unless others were there when the program was observed, or it was a device that was slow."""
    record = _set(USUAL_S, 1.1, num_beside=num_beside)
    record = msgspec.structs.replace(
        record, contention=msgspec.structs.replace(record.contention, max_foreign_share=share)
    )
    pace = ContentionFilter(Originals(), USUAL_S, observed_busy=busy, heed_neighbours=frozenset({"a"}))
    found = pace.beside(ORDER, record, PLAN)
    assert (found is None) == told
    assert found is None or found.heeding == PLAN
