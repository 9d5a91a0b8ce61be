"""What is found twice on a line has one price there."""

from __future__ import annotations

import pytest

from hotloop.diagnose.check.same_line import one_price_a_line
from hotloop.model.finding import Finding, Severity


def _finding(code: str, cost_s: float, line: int = 7) -> Finding:
    return Finding(
        code=code,
        title="",
        severity=Severity.WARNING,
        path="train.py",
        line=line,
        cost_s=cost_s,
        evidence=f"{code} is here",
        advice="",
    )


def _left(*findings: Finding) -> list[tuple[str, str]]:
    return [(one.code, one.evidence) for one in one_price_a_line(findings)]


@pytest.mark.parametrize(
    ("dearer", "cheaper"),
    [
        ("forward-without-backward", "repeated-computation"),
        ("repeated-computation", "forward-without-backward"),
        ("constant-computed-each-step", "tensor-creation-in-step"),
        ("copy-in-step", "constant-computed-each-step"),
    ],
)
def test_the_dearer_of_two_that_are_the_same_counts(dearer: str, cheaper: str) -> None:
    (left,) = _left(_finding(cheaper, 0.1), _finding(dearer, 0.2))
    assert left == (dearer, f"{dearer} is here; of that {cheaper} is here")


def test_calls_on_a_line_are_added_up_by_nobody_where_nothing_is_constant() -> None:
    calls = [_finding("tensor-creation-in-step", 0.1), _finding("copy-in-step", 0.2)]
    assert len(_left(*calls)) == 2
    assert len(_left(*calls, _finding("constant-computed-each-step", 0.3))) == 1


def test_other_lines_have_their_own_price() -> None:
    assert (
        len(_left(_finding("forward-without-backward", 0.2), _finding("repeated-computation", 0.1, 8))) == 2
    )
