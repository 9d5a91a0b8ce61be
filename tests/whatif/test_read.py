"""From blocks with a change on and off to a ratio: drift stays out, what did not act counts nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.model.observation import Phase
from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.whatif.orders import CACHED, LOADER
from hotloop.whatif.read import ceilings, fitted, predictions, ratio_of
from hotloop.whatif.run import Outcome, Report
from tests.optimize.harness import observation

ON = {"faster": (True, "it acted")}


def report(factor: float, *, drift: float = 0.0, rounds: int = 3, on: bool = True) -> Report:
    """A program whose steps take 10 ms, `factor` times less with the change, and `drift` more in each block."""
    blocks: list[tuple[str | None, tuple[float, ...]]] = []
    for index in range(2 * rounds + 1):
        knob = "faster" if index % 2 else None
        step_s = 0.01 * math.exp(drift * index) / (factor if knob else 1.0)
        blocks.append((knob, (step_s,) * 5))
    return Report(pid=1, rank=None, blocks=tuple(blocks), effects={"faster": (on, "seen")}, done=True)


def _ratio(*reports: Report) -> Ratio | None:
    return ratio_of(fitted(reports), "faster")


@given(st.floats(0.2, 5.0), st.floats(-0.2, 0.2))
def test_a_drift_of_the_machine_does_not_enter(factor: float, drift: float) -> None:
    ratio = _ratio(report(factor, drift=drift))
    assert ratio is not None
    assert ratio.low < factor < ratio.high
    assert ratio.ratio == pytest.approx(factor, rel=0.05)


def test_the_interval_holds_the_ratio_and_is_not_a_point() -> None:
    ratio = _ratio(report(1.5))
    assert ratio is not None
    assert ratio.low < 1.5 < ratio.high
    assert ratio.ratio == pytest.approx(1.5)


def test_several_knobs_share_what_the_blocks_without_any_say() -> None:
    blocks: list[tuple[str | None, tuple[float, ...]]] = [(None, (0.010,) * 5)]
    for name, step_s in (("faster", 0.005), ("slower", 0.020), ("null", 0.010)) * 3:
        blocks += [(name, (step_s,) * 5), (None, (0.010,) * 5)]
    effects = dict.fromkeys(("faster", "slower", "null"), (True, "seen"))
    fit = fitted([Report(pid=1, rank=None, blocks=tuple(blocks), effects=effects, done=True)])
    found = [ratio_of(fit, name) for name in effects]
    assert [one and one.ratio for one in found] == pytest.approx([2.0, 0.5, 1.0])


def test_what_was_not_seen_to_act_has_no_ratio() -> None:
    assert _ratio(report(1.5, on=False)) is None


def test_too_few_blocks_have_no_ratio() -> None:
    assert _ratio(report(1.5, rounds=2)) is None


def test_a_second_start_of_the_program_is_looked_at_too() -> None:
    assert _ratio(report(1.5, rounds=1), report(1.5)) is not None


def test_predictions_name_their_candidates_and_their_one_off_cost() -> None:
    measured = report(2.0)
    told = predictions(
        [Candidate(name="faster"), Candidate(name="other")],
        Outcome(reports=(Report(**{**_fields(measured), "switched": {"faster": (12.0, 4)}}),)),
    )
    assert [one.name for one in told] == ["faster"]
    assert told[0].one_off_s == pytest.approx(12.0 - 4 * 0.005)


def _of_cached_batch(factor: float) -> Outcome:
    blocks = tuple((CACHED if knob else None, times) for knob, times in report(factor).blocks)
    loader = {"num_workers": 0, "samples_per_s": {"0": 40.0, "2": 75.0}, "missing": ""}
    whole = Report(
        pid=1, rank=None, blocks=blocks, effects={CACHED: (True, "")}, benches={LOADER: loader}, done=True
    )
    return Outcome(reports=(whole,))


def test_ceilings_say_what_is_known_and_nothing_else() -> None:
    found = ceilings(observation({Phase.DATA: 0.5, Phase.FORWARD: 0.5}), _of_cached_batch(2.0))
    assert found.perfect_input is not None
    assert found.perfect_input_step_s == pytest.approx(0.5)
    assert found.compute_samples_per_s is None  # no batch dimension was seen
    assert found.loader_samples_per_s == {0: 40.0, 2: 75.0}
    assert found.loader_now == 40.0


def test_without_a_run_every_ceiling_is_unknown() -> None:
    found = ceilings(observation(), Outcome(reports=()))
    assert (found.perfect_input, found.num_workers, found.loader_now, found.transfer_s) == (None,) * 4


def _fields(one: Report) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__struct_fields__}
