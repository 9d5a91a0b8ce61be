"""What a set of arms says of a plan, and what is expected of candidates together."""

from __future__ import annotations

from typing import cast

import pytest

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Contention, Failure, FailureKind
from hotloop.tune.executor import ArmRecord, SetOrder, SetRecord
from hotloop.tune.search.arm_verdict import clearly_worse
from hotloop.tune.search.batches import expected_together
from hotloop.tune.verdict.baseline import NoiseBaseline

STEP = Candidate(name="step")


@pytest.mark.parametrize(
    ("kind", "worse"),
    [(FailureKind.LATE, False), (FailureKind.CRASH, True), (FailureKind.OUT_OF_MEMORY, True)],
)
def test_a_plan_that_was_late_is_not_worse(kind: FailureKind, worse: bool) -> None:
    order = SetOrder(plans=((), (STEP,)), max_rounds=4)
    record = SetRecord(
        arms=(ArmRecord(step_s=1.0), Failure(kind=kind, message="it failed")),
        rounds=(),
        contention=Contention(num_blocks=0, num_void=0),
    )
    assert clearly_worse(record, order, 1, cast("NoiseBaseline", None)) is worse


def test_of_what_cannot_be_on_together_the_most_promising_counts() -> None:
    """Two recipes of float8 and int8 were expected to gain more together than compiling."""
    batch = [
        Candidate(name="float8", params={"recipe": "rowwise"}, prior=1.1),
        Candidate(name="float8", params={"recipe": "tensorwise"}, prior=1.2),
        Candidate(name="int8", prior=1.2),
        Candidate(name="layout", prior=1.1),
        Candidate(name="threads", prior=0.9),
    ]
    conflicts = {"float8": frozenset({"int8"}), "int8": frozenset({"float8"})}
    assert expected_together(batch, conflicts) == pytest.approx(1.2 * 1.1)
