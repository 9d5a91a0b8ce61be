"""When growing memory is a leak, and when a program that settles."""

from __future__ import annotations

import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.finding import Finding, Severity

from .watched_cases import with_memory


def _found(*gigabytes: float) -> list[Finding]:
    return [one for one in diagnose(with_memory(*gigabytes)).findings if one.code == "memory-growing"]


def test_its_rate_and_what_it_comes_to() -> None:
    (finding,) = _found(*(1 + 0.05 * at for at in range(12)))
    assert finding.severity is Severity.WARNING
    assert "95.4 MiB/s [95.4 MiB, 95.4 MiB], 9.54 MiB a step" in finding.evidence
    assert "full in 80 s" in finding.evidence


@pytest.mark.parametrize(
    "gigabytes",
    [
        [1.0] * 12,
        [1.0, 1.2, 1.3, 1.35, 1.38, 1.4, 1.41, 1.415, 1.418, 1.42, 1.42, 1.42],
        [1.0, 1.4] * 6,
        [1.0 + 0.0001 * at for at in range(12)],
        [1.0, 1.1, 1.2],
    ],
    ids=["flat", "settles", "comes and goes", "too little", "too short"],
)
def test_what_is_no_leak(gigabytes: list[float]) -> None:
    assert _found(*gigabytes) == []


def test_a_slow_one_that_has_days_is_information() -> None:
    (finding,) = _found(*(1 + 0.00001 * at for at in range(2000)))
    assert finding.severity is Severity.INFO
    assert "days" in finding.evidence


def test_hours_are_not_foreseen_from_seconds() -> None:
    """8 GB are left: for 13 minutes at 10 MB a second, for 83 at 1.6; both were watched for six seconds."""
    (fast,), (slow,) = (_found(*(1 + step * at for at in range(12))) for step in (0.005, 0.0008))
    assert fast.severity is Severity.WARNING
    assert slow.severity is Severity.INFO
