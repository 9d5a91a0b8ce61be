"""Earlier sessions order what is tried, and do no more."""

import math
from pathlib import Path

import pytest

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Failure, FailureKind, Trial
from hotloop.tune.design import experience
from hotloop.tune.design.candidates import promising_first
from hotloop.tune.design.experience import (
    FURTHEST,
    KEPT,
    Outcome,
    factor,
    keep_outcomes,
    kept_outcomes,
    shipped_outcomes,
    with_trials,
)


def _trial(name: str, prior: float, ratio: float | None) -> Trial:
    return Trial(
        key=name,
        candidate=Candidate(name=name, prior=prior),
        incumbent=(),
        outcome=Failure(kind=FailureKind.CRASH, message=""),
        decision="accepted",
        ratio=None if ratio is None else Ratio(ratio, ratio, ratio),
    )


def test_what_disappoints_here_comes_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """bf16 is expected to bring most, and brought nothing in three sessions of this machine."""
    monkeypatch.setattr(experience, "shipped_outcomes", dict)
    candidates = [Candidate(name="autocast_bf16", prior=1.5), Candidate(name="channels_last", prior=1.2)]
    assert [one.name for one in promising_first(candidates)] == ["autocast_bf16", "channels_last"]
    for _ in range(3):
        keep_outcomes([_trial("autocast_bf16", 1.5, 0.9)], "cpu", tmp_path)
    outcomes = kept_outcomes(tmp_path)

    def learned(one: Candidate) -> float:
        return factor(outcomes, one, "cpu")

    ordered = promising_first(candidates, learned=learned)
    assert [one.name for one in ordered] == ["channels_last", "autocast_bf16"]
    assert ordered[1].prior == 1.5
    assert ordered[1].predicted is None


def test_another_kind_of_device_is_another_matter() -> None:
    """What a CPU measured says nothing of a GPU."""
    outcomes = with_trials({}, [_trial("compile", 1.2, 0.6)], "cpu")
    assert factor(outcomes, Candidate(name="compile"), "cpu") < 1
    assert factor(outcomes, Candidate(name="compile"), "cuda") == 1


def test_what_was_not_measured_says_nothing() -> None:
    """A crash is no gain of zero."""
    assert with_trials({}, [_trial("compile", 1.2, None)], "cpu") == {}


def test_one_absurd_trial_does_not_order_all_later_ones() -> None:
    """A figure of 1000x counts as one of 4x, and thirty others outweigh it."""
    outcomes = with_trials({}, [_trial("compile", 1.0, 1000.0)], "cpu")
    assert math.isclose(outcomes["compile on cpu"].mean_log, FURTHEST)
    outcomes = with_trials(outcomes, [_trial("compile", 1.0, 1.0)] * 100, "cpu")
    assert outcomes["compile on cpu"].num == KEPT
    assert outcomes["compile on cpu"].mean_log < 0.05


def test_a_damaged_file_is_none(tmp_path: Path) -> None:
    """The shipped outcomes are taken instead, and the file is written anew."""
    keep_outcomes([_trial("compile", 1.0, 2.0)], "cpu", tmp_path)
    (file,) = tmp_path.iterdir()
    assert kept_outcomes(tmp_path) != shipped_outcomes()
    file.write_text('{"compile on cpu": 5}')
    assert kept_outcomes(tmp_path) == shipped_outcomes()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Nothing is kept, and nothing fails."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    keep_outcomes([_trial("compile", 1.0, 2.0)], "cpu", blocked / "cache")
    assert blocked.read_text() == ""


def test_the_shipped_outcomes_are_of_rows_that_exist() -> None:
    """Each is of an optimization of the catalogue and counts its trials."""
    from hotloop.optimize.registry import get

    for key, outcome in shipped_outcomes().items():
        name, _, device = key.partition(" on ")
        get(name)
        assert device in {"cpu", "cuda"}
        assert isinstance(outcome, Outcome)
        assert 0 < outcome.num <= KEPT
