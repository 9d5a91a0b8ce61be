"""What a set of arms says of one."""

from __future__ import annotations

from typing import cast

import pytest

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Failure, FailureKind
from hotloop.tune.search.arm_verdict import decide
from hotloop.tune.search.status import Status
from hotloop.tune.verdict.baseline import NoiseBaseline


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (FailureKind.LATE, Status.LATE),
        (FailureKind.CRASH, Status.FAILED),
        (FailureKind.OUT_OF_MEMORY, Status.FAILED),
    ],
)
def test_an_arm_that_was_late_has_not_failed(kind: FailureKind, status: Status) -> None:
    failure = Failure(kind=kind, message="it failed")
    found, reason, ratio = decide(Candidate(name="step"), failure, cast("NoiseBaseline", None))
    assert found is status
    assert found.can_be_tried == (status is Status.LATE)
    assert "it failed" in reason
    assert ratio is None
