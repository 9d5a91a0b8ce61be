"""Whether a patch keeps its plan's promise, and which edit does not: on a program whose speed is made up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from hotloop.model.outcome import Outcome
from hotloop.model.ratio import Ratio
from hotloop.model.sites import Sites
from hotloop.model.tuning import ParityEvidence, PlanStep
from hotloop.patch.account import proof_told
from hotloop.patch.prove import Proof, falls_short, promise, responsible
from hotloop.patch.rewrite_plan import Patch, StepOutcome
from hotloop.source.outcome import Edited, Refused, Rewrite

STEPS = [PlanStep(name=f"step_{number}", ratio=1.2, low=1.15, high=1.25) for number in range(8)]


def patch_of(*outcomes: Rewrite) -> Patch:
    made = tuple(StepOutcome(step, outcome) for step, outcome in zip(STEPS, outcomes, strict=False))
    return Patch({}, {}, made, Sites())


@pytest.mark.parametrize("bad", range(8))
@pytest.mark.parametrize("num", [2, 5, 8])
def test_halving_finds_the_edit_that_slows_the_program(num: int, bad: int) -> None:
    steps = STEPS[:num]
    culprit = steps[bad % num]
    measured: list[int] = []

    def simulated(part: Sequence[PlanStep]) -> bool:
        """As fast as promised, but for one step, which makes it half as fast."""
        measured.append(len(part))
        speed = math.prod(0.5 if step is culprit else step.ratio for step in part)
        promised = promise(patch_of(*(Edited() for _ in part)))
        return falls_short(Ratio(speed, speed * 0.99, speed * 1.01), promised)

    whole = promise(patch_of(*(Edited() for _ in steps)))
    assert responsible(steps, simulated, Ratio(0.6, 0.59, 0.61), whole) == culprit.name
    assert len(measured) <= math.ceil(math.log2(num))


def test_a_plan_of_one_step_needs_no_further_measurement() -> None:
    whole = promise(patch_of(Edited()))
    assert responsible(STEPS[:1], lambda _: pytest.fail("measured"), Ratio(1, 0.9, 1.1), whole) == "step_0"


def test_no_step_is_blamed_where_only_the_confirmed_figure_is_missed() -> None:
    """Six steps of 1.2 [1.15, 1.25] promise 2.3 at least; confirmed was 3.0, measured is 2.7."""
    steps, whole = STEPS[:6], promise(patch_of(*(Edited() for _ in STEPS[:6])))
    ratio = Ratio(2.7, 2.65, 2.75)
    assert falls_short(ratio, Ratio(3.0, 2.95, 3.05))
    assert responsible(steps, lambda _: pytest.fail("measured"), ratio, whole) is None


@pytest.mark.parametrize(
    ("ratio", "short"),
    [
        (Ratio(1.1, 1.05, 1.14), True),
        (Ratio(1.1, 1.0, 1.16), False),
        (Ratio(1.5, 1.4, 1.6), False),
        (None, False),
    ],
)
def test_a_promise_is_missed_by_more_than_both_intervals(ratio: Ratio | None, *, short: bool) -> None:
    assert falls_short(ratio, Ratio(1.2, 1.15, 1.25)) is short


@pytest.mark.parametrize(
    ("ratio", "missed", "step", "says"),
    [
        (Ratio(1.22, 0.57, 2.62), False, None, "does not prove"),
        (None, False, None, "does not prove"),
        (Ratio(1.3, 1.2, 1.4), False, None, "promised by the plan      1.20x [1.15, 1.25]"),
        (Ratio(1.3, 1.2, 1.4), False, None, "a verdict needs 3"),
        (Ratio(1.05, 1.02, 1.08), True, "compile", "the edit of compile"),
        (Ratio(1.05, 1.02, 1.08), True, None, "too wide to say"),
    ],
)
def test_the_account_says_what_is_proven(
    ratio: Ratio | None, step: str | None, says: str, *, missed: bool
) -> None:
    parity = ParityEvidence(
        passed=True, statistic=0.1, limit=0.2, num_steps=9, method="worst window", evidence="worst window 0.1"
    )
    proof = Proof(ratio, Ratio(1.2, 1.15, 1.25), parity, missed, step, num_pairs=2)
    told = list(proof_told(proof))
    assert any(says in line for line in told)
    assert any("does not prove" in line for line in told) == (ratio is None or ratio.low < 1)
    assert max(map(len, told)) <= 80
    assert proof.outcome is (Outcome.FAILED if missed else Outcome.NOT_JUDGED), "two pairs are no verdict"


def _proof(
    ratio: Ratio | None, *, missed: bool = False, disturbed: bool = False, passed: bool = True
) -> Proof:
    parity = ParityEvidence(passed=passed, statistic=0.1, limit=0.2, num_steps=9, method="", evidence="")
    return Proof(ratio, Ratio(1.2, 1.15, 1.25), parity, missed, None, num_pairs=3, disturbed=disturbed)


def test_a_proof_passes_fails_or_cannot_judge() -> None:
    assert _proof(Ratio(1.3, 1.2, 1.4)).outcome is Outcome.PASSED
    assert _proof(Ratio(1.3, 1.2, 1.4), passed=False).outcome is Outcome.FAILED
    assert _proof(Ratio(1.05, 1.02, 1.08), missed=True).outcome is Outcome.FAILED
    assert _proof(Ratio(1.22, 0.57, 2.62)).outcome is Outcome.NOT_JUDGED
    assert _proof(None).outcome is Outcome.NOT_JUDGED
    beside = _proof(Ratio(1.05, 1.02, 1.08), missed=True, disturbed=True)
    assert beside.outcome is Outcome.NOT_JUDGED
    assert any("other processes disturbed most pairs" in line for line in proof_told(beside))


def test_the_confirmed_figure_is_the_promise_of_the_whole_plan_alone() -> None:
    confirmed = Ratio(1.4, 1.38, 1.42)
    assert promise(patch_of(Edited(), Edited()), confirmed) == confirmed
    part = promise(patch_of(Edited(), Refused("it is in a library")), confirmed)
    assert part == Ratio(1.2, 1.15, 1.25)
