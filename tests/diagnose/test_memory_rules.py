"""Rules that read the account of the peak: what they say is saved, and where they are silent."""

from __future__ import annotations

import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.finding import Finding
from hotloop.model.observation import Observation
from tests.diagnose.memory_cases import CASES, SILENT
from tests.diagnose.observations import FINE


def _found(observation: Observation) -> dict[str, Finding]:
    return {finding.code: finding for finding in diagnose(observation).findings}


@pytest.mark.parametrize("code", CASES)
def test_it_says_how_many_bytes_are_saved_and_of_what(code: str) -> None:
    evidence = _found(CASES[code])[code].evidence
    assert "saves at most" in evidence
    assert "GiB" in evidence.partition("saves at most")[2]


@pytest.mark.parametrize("code", SILENT)
def test_it_is_silent_where_the_pattern_is_not(code: str) -> None:
    assert code not in _found(SILENT[code])


def test_without_an_account_they_abstain() -> None:
    abstained = {one.code for one in diagnose(FINE).abstained}
    assert abstained >= set(CASES)


def test_the_optimizers_peak_comes_down_to_the_next_one_at_most() -> None:
    evidence = _found(CASES["optimizer-step-makes-peak"])["optimizer-step-makes-peak"].evidence
    assert "saves at most 2.00 GiB of the peak's 6.00 GiB" in evidence


def test_the_loss_is_named_with_its_line() -> None:
    finding = _found(CASES["loss-makes-peak"])["loss-makes-peak"]
    assert (finding.path, finding.line) == ("train.py", 12)
    assert "4096x50000" in finding.evidence
