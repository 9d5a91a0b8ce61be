"""Where ceilings and predictions go: the bottleneck's sentence, the gains of findings, the order of trials."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.bottleneck import bottleneck
from hotloop.diagnose.check.engine import diagnose
from hotloop.model.ceilings import Ceilings, Prediction
from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Failure, FailureKind, Trial
from hotloop.report.content.prediction_error import prediction_error, with_prediction
from hotloop.tune.design.candidates import promising_first
from hotloop.whatif.unswitched import predictions
from tests.diagnose.observations import with_phases

WAITS = with_phases(data=0.6)


def test_the_bottleneck_gives_the_measured_limits() -> None:
    limits = Ceilings(compute_samples_per_s=1420.0, loader_samples_per_s={0: 260.0, 2: 500.0}, num_workers=0)
    found = bottleneck(msgspec.structs.replace(WAITS, ceilings=limits))
    assert found is not None
    assert found.sentence == (
        "input-bound: 60% of the step waits for data; compute alone would run at 1,420 samples/s, "
        "the loader alone at 260; without workers they take turns"
    )


def test_a_finding_whose_fix_was_predicted_has_that_gain() -> None:
    told = tuple(
        Prediction(
            name="loader_workers", params={"num_workers": n}, ratio=Ratio(r, r - 0.1, r + 0.1), method=""
        )
        for n, r in ((1, 1.2), (2, 1.7))
    )
    found = diagnose(msgspec.structs.replace(WAITS, predictions=told)).findings[0]
    assert found.code == "loader-in-training-process"
    assert found.gain == told[1].ratio
    assert diagnose(WAITS).findings[0].gain != found.gain


def test_trials_go_by_expected_gain_for_each_second() -> None:
    candidates = [
        Candidate(name="guessed", prior=1.3),
        Candidate(name="compile", prior=1.1),
        Candidate(name="slower", prior=2.0),
    ]
    told = [
        Prediction(name="compile", ratio=Ratio(1.4, 1.3, 1.5), method="", one_off_s=60.0),
        Prediction(name="slower", ratio=Ratio(0.8, 0.7, 0.9), method=""),
    ]
    assert [one.name for one in promising_first(candidates, told)] == ["guessed", "compile", "slower"]
    assert [one.name for one in promising_first(candidates)] == ["slower", "guessed", "compile"]


def test_predictions_belong_to_parameters_too() -> None:
    two = Candidate(name="loader_workers", params={"num_workers": 2, "persistent_workers": True})
    told = [
        Prediction(
            name="loader_workers",
            params={"persistent_workers": True, "num_workers": 2},
            ratio=Ratio(1.5, 1.4, 1.6),
            method="",
        )
    ]
    assert promising_first([two], told)[0].predicted == Ratio(1.5, 1.4, 1.6)
    other = Candidate(name="loader_workers", params={"num_workers": 1})
    assert promising_first([other], told)[0].predicted is None


def test_the_prediction_error_names_the_worst() -> None:
    trials = [_trial("good", 1.5, 1.5), _trial("bad", 1.0, 2.0), _trial("none", None, 2.0)]
    assert prediction_error(trials) == (
        "2 gains predicted before the trial, median error 41%, largest 100% (bad)"
    )


def test_a_trial_beside_other_changes_is_held_against_no_prediction() -> None:
    """bf16 was predicted 1.84x alone, and measured 1.23x beside a fused recurrence."""
    alone = _trial("alone", 1.5, 1.5)
    beside = msgspec.structs.replace(_trial("bf16", 1.84, 1.23), incumbent=(Candidate(name="fused"),))
    assert with_prediction([alone, beside, _trial("none", None, 2.0)]) == [alone]


def test_without_predictions_nothing_is_said() -> None:
    assert prediction_error([_trial("none", None, 2.0)]) is None


def test_another_allocator_is_expected_to_do_what_malloc_does() -> None:
    glibc = Prediction(
        name="cpu_allocator", params={"allocator": "glibc"}, ratio=Ratio(1.2, 1.1, 1.3), method=""
    )
    candidate = Candidate(name="cpu_allocator", params={"allocator": "jemalloc"})
    (found,) = predictions(WAITS, [candidate], [glibc])
    assert found.ratio.ratio == 1.2
    assert (found.ratio.low, found.ratio.high) == pytest.approx((0.9, 1.5))


def test_what_nothing_is_known_of_has_no_prediction() -> None:
    assert not list(predictions(WAITS, [Candidate(name="openmp_wait_policy")], []))


def _trial(name: str, predicted: float | None, measured: float) -> Trial:
    return Trial(
        key=name,
        candidate=Candidate(name=name),
        incumbent=(),
        outcome=Failure(kind=FailureKind.CRASH, message=""),
        decision="",
        ratio=Ratio(measured, measured, measured),
        predicted=Ratio(predicted, predicted, predicted) if predicted else None,
    )
