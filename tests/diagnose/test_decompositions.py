"""A decomposition of a matrix in the step is named by its line."""

from __future__ import annotations

import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.finding import Finding
from hotloop.model.observation import Observation

from .decomposition_cases import PROGRAM, decomposing


def _found(observation: Observation) -> Finding | None:
    findings = diagnose(observation).findings
    return next((one for one in findings if one.code == "decomposition-in-step"), None)


def test_the_line_that_decomposes_is_named_and_priced() -> None:
    finding = _found(decomposing("aten::_linalg_svd"))
    assert finding is not None
    assert (finding.path, finding.line) == (PROGRAM, 10)
    assert finding.gain is not None
    assert finding.cost_s is not None
    assert 0.08 <= finding.cost_s <= 0.1, "with the backward of what it computes"
    assert finding.gain.ratio > 3.0


@pytest.mark.parametrize("operator", ["aten::linalg_vector_norm", "aten::mm"])
def test_what_decomposes_nothing_is_not(operator: str) -> None:
    assert _found(decomposing(operator)) is None
