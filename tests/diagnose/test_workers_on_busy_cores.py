"""What loader workers bring where they take the cores that compute."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.price.threads import parallel_share, pipelined
from hotloop.model.deep import Deep
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation
from hotloop.model.operators import Operators

from .observations import with_phases, with_program
from .watched_cases import operator


def waiting(long: float, num_cores: int = 2) -> Observation:
    """Return a program on so many threads as cores that makes batches for 0.42 of the step.

    Args:
        long: share of the operators' time that threads share.
        num_cores: of the machine.
    """
    operators = (
        operator("aten::convolution", long, count=10.0),
        operator("aten::abs", 1.0 - long, count=10_000.0),
    )
    seen = Operators(num_steps=3, window_s=0.3, num=10_010.0, self_s=0.1, device_s=None, operators=operators)
    observed = with_program(with_phases(data=0.42, forward=0.28, backward=0.3), num_threads=num_cores)
    return msgspec.structs.replace(
        observed, machine={**observed.machine, "num_cores": num_cores}, deep=Deep(operators=seen)
    )


def told(observation: Observation) -> Finding:
    """Return the finding about the loader."""
    return next(one for one in diagnose(observation).findings if one.code == "loader-in-training-process")


def test_workers_bring_nothing_where_both_cores_compute_in_long_operators() -> None:
    finding = told(waiting(long=0.5))
    assert finding.gain is not None
    assert finding.gain.ratio == 1.0
    assert "input-bound" not in {one.code for one in diagnose(waiting(long=0.5)).findings}
    assert "workers would take the cores that compute" in finding.evidence


def test_workers_bring_the_whole_wait_where_operators_are_too_short_for_threads() -> None:
    finding = told(waiting(long=0.0))
    assert finding.gain is not None
    assert finding.gain.ratio == pytest.approx(1 / 0.58, rel=0.01)
    assert finding.severity is Severity.WARNING


def test_operators_of_loading_are_not_taken_for_computing() -> None:
    assert parallel_share(waiting(long=0.29)) == pytest.approx(0.5, abs=0.03)
    assert parallel_share(waiting(long=0.9)) == 1.0


def test_idle_cores_hold_workers() -> None:
    assert pipelined(waiting(long=0.5, num_cores=8), 0.42, 8, 2, threads=6) == pytest.approx(1.3, abs=0.15)


def test_threads_and_workers_on_too_few_cores_wait_for_one_another() -> None:
    seen = waiting(long=0.5)
    assert pipelined(seen, 0.42, 2, 1, threads=None) < 1.0
