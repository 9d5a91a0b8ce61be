"""Steps, phases and rates of timelines whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hotloop.model.observation import Anchor, Phase
from hotloop.model.step_series import StepKind
from hotloop.observe.steps.ranks import observe_rank, steady_windows
from hotloop.observe.steps.rates import rates
from hotloop.observe.steps.rhythm import find_anchor, fold, shortest_period
from hotloop.observe.steps.series import step_series
from hotloop.observe.steps.step_windows import windows
from hotloop.probe.record.events import Kind, begin, end

from .synthetic import Script

_STEP = Anchor("optimizer", 0, 1)


def test_a_plain_loop(tmp_path: Path) -> None:
    timeline = Script(tmp_path).train(6, loss_ms=0.5).timeline()
    assert find_anchor(timeline.spans) == _STEP
    steps = windows(timeline, _STEP)
    assert len(steps) == 5
    for step in steps:
        assert step.regular
        assert step.duration_s == pytest.approx(8.5e-3)
        assert sum(step.phases.values()) == pytest.approx(step.duration_s)
        assert step.phases[Phase.FORWARD] == pytest.approx(2.5e-3), "the loss counts as forward"
        assert step.phases[Phase.OTHER] == pytest.approx(1e-3)


def test_evaluation_a_new_iterator_and_a_checkpoint_make_a_step_irregular(tmp_path: Path) -> None:
    script = Script(tmp_path).train(3).span(Kind.EVALUATE, 50)
    script.train(3).span(Kind.ITERATOR, 20).train(3).span(Kind.SAVE, 10).train(3)
    steps = windows(script.timeline(), _STEP)
    assert [step.regular for step in steps] == [True] * 2 + [False] + [True] * 2 + [False] + [True] * 2 + [
        False
    ] + [True] * 2


def test_a_checkpoint_in_every_step_belongs_to_it(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(5):
        script.train(1).span(Kind.SAVE, 10)
    assert all(step.regular for step in windows(script.timeline(), _STEP))


def test_two_optimizers_are_one_step(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(6):
        script.span(Kind.DATA, 1)
        for slot in (0, 1):
            script.span(Kind.FORWARD, 1, slot).span(Kind.BACKWARD, 1).span(Kind.OPTIMIZER, 1, slot)
    anchor = find_anchor(script.timeline().spans)
    assert anchor == Anchor("optimizer", 1, 1)
    assert len(windows(script.timeline(), anchor)) == 5


def test_five_critic_steps_and_one_of_the_generator_are_one_step(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(6):
        for _ in range(5):
            script.span(Kind.FORWARD, 1).span(Kind.BACKWARD, 1).span(Kind.OPTIMIZER, 1, 0)
        script.span(Kind.FORWARD, 1, 1).span(Kind.BACKWARD, 1).span(Kind.OPTIMIZER, 1, 1)
    assert find_anchor(script.timeline().spans) == Anchor("optimizer", 1, 1)


def test_accumulation(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(5):
        for _ in range(4):
            script.span(Kind.DATA, 1).size(8).span(Kind.FORWARD, 2).span(Kind.BACKWARD, 3)
        script.span(Kind.OPTIMIZER, 1)
    timeline = script.timeline()
    steps = windows(timeline, _STEP)
    assert fold(steps[0].tokens) == ("4x(data forward backward)", "optimizer")
    samples, _ = rates(timeline, steps, [{"batch_size": 8}])
    assert samples == pytest.approx(32 / 25e-3)


def test_a_closure_nests_in_the_optimizer_and_adds_up_once(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(5):
        script.mark(begin(Kind.OPTIMIZER))
        for _ in range(3):
            script.size(8).span(Kind.FORWARD, 2).wait(0.5).span(Kind.BACKWARD, 3)
        script.wait(1).mark(end(Kind.OPTIMIZER))
    timeline = script.timeline()
    for step in windows(timeline, _STEP):
        assert step.duration_s == pytest.approx(17.5e-3)
        assert step.phases[Phase.FORWARD] == pytest.approx(7.5e-3)
        assert step.phases[Phase.BACKWARD] == pytest.approx(9e-3)
        assert step.phases[Phase.OPTIMIZER] == pytest.approx(1e-3)
        assert step.phases[Phase.OTHER] == pytest.approx(0)
    samples, _ = rates(timeline, windows(timeline, _STEP), [])
    assert samples == pytest.approx(8 / 17.5e-3), "one batch a step, however often the closure is called"


def test_the_longer_of_two_trainings_is_the_program_s(tmp_path: Path) -> None:
    script = Script(tmp_path).train(60)
    for _ in range(70):
        script.span(Kind.DATA, 1).span(Kind.FORWARD, 9, 1).span(Kind.BACKWARD, 9).span(Kind.OPTIMIZER, 1, 1)
    timeline = script.timeline()
    assert find_anchor(timeline.spans) == Anchor("optimizer", 1, 1)
    assert len(windows(timeline, Anchor("optimizer", 1, 1))) == 69


def test_lbfgs_is_not_judged_by_its_closures_before_its_first_step_has_ended(tmp_path: Path) -> None:
    script = Script(tmp_path).made_optimizer().mark(begin(Kind.OPTIMIZER))
    for _ in range(20):
        script.span(Kind.FORWARD, 2).span(Kind.BACKWARD, 3)
    timeline = script.timeline()
    assert timeline.may_optimize
    assert find_anchor(timeline.spans, may_optimize=timeline.may_optimize) is None


def test_a_roll_out_before_the_first_update_is_no_inference(tmp_path: Path) -> None:
    script = Script(tmp_path).made_optimizer()
    for _ in range(100):
        script.span(Kind.EVALUATE, 1)
    timeline = script.timeline()
    assert find_anchor(timeline.spans, may_optimize=timeline.may_optimize) is None
    assert find_anchor(timeline.spans) == Anchor("forward", 0, 1)


def test_a_program_without_an_optimizer_object_steps_by_its_backward(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(6):
        script.span(Kind.FORWARD, 2).span(Kind.BACKWARD, 3).wait(2)
    assert find_anchor(script.timeline().spans) == Anchor("backward", 0, 1)


def test_evaluations_in_every_step_belong_to_it(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(6):
        script.size(4).span(Kind.EVALUATE, 1, 1).size(8).span(Kind.FORWARD, 2).span(Kind.BACKWARD, 3)
        script.span(Kind.OPTIMIZER, 1)
    timeline = script.timeline()
    steps = windows(timeline, _STEP)
    assert all(step.regular for step in steps)
    assert [step.phases[Phase.FORWARD] for step in steps] == pytest.approx([3e-3] * 5)
    assert [step.evaluated_s for step in steps] == pytest.approx([1e-3] * 5)
    assert rates(timeline, steps, [])[0] == pytest.approx(8 / 7e-3), "what is trained on, not what is asked"


def test_what_a_model_acts_on_is_no_sample(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(6):
        for _ in range(20):
            script.size(1).span(Kind.FORWARD, 0.2).wait(1)
        script.span(Kind.BACKWARD, 3).span(Kind.OPTIMIZER, 1)
    timeline = script.timeline()
    assert rates(timeline, windows(timeline, _STEP), [])[0] is None


def test_tokens_are_counted_apart_from_samples(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(5):
        script.size(4, tokens=4 * 128).span(Kind.FORWARD, 2).span(Kind.BACKWARD, 3).span(Kind.OPTIMIZER, 5)
    timeline = script.timeline()
    samples, tokens = rates(timeline, windows(timeline, _STEP), [])
    assert samples == pytest.approx(400)
    assert tokens == pytest.approx(51_200)


def test_a_pause_of_ours_is_taken_off(tmp_path: Path) -> None:
    script = Script(tmp_path).train(3).span(Kind.PAUSE, 500).train(3)
    steps = windows(script.timeline(), _STEP)
    assert [step.duration_s for step in steps] == pytest.approx([8e-3] * 5)


def test_an_exception_leaves_no_open_span(tmp_path: Path) -> None:
    script = Script(tmp_path).train(3).mark(begin(Kind.FORWARD)).wait(5).train(3)
    timeline = script.timeline()
    steps = windows(timeline, _STEP)
    assert sum(step.regular for step in steps) >= 4
    for step in steps:
        assert sum(step.phases.values()) == pytest.approx(step.duration_s)


@pytest.mark.parametrize(
    ("tokens", "folded"),
    [
        ("a b a b c", ("2x(a b)", "c")),
        ("a a a", ("3x(a)",)),
        ("a b c", ("a", "b", "c")),
        ("", ()),
    ],
)
def test_repeats_are_folded(tokens: str, folded: tuple[str, ...]) -> None:
    unfolded = fold(tokens.split())
    assert " ".join(unfolded).split() == " ".join(folded).split()


def test_the_shortest_period_bears_a_few_breaks() -> None:
    assert shortest_period([0, 0, 1] * 20) == 3
    assert shortest_period([0, 1] * 10 + [0] + [0, 1] * 10) == 2
    assert shortest_period([0] * 30) == 1


def _rest(script: Script, num: int) -> Script:
    """Take steps of 8 ms of which only the ends are recorded."""
    script.mark(begin(Kind.LEAN))
    for _ in range(num):
        script.wait(8).span(Kind.OPTIMIZER, 0)
    return script.mark(end(Kind.LEAN))


def test_steps_of_which_only_the_end_was_recorded_are_counted_not_timed(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(3):
        _rest(script.train(10), 30)
    timeline = script.timeline()
    anchor = find_anchor(timeline.spans)
    assert anchor is not None
    steps = windows(timeline, anchor)
    assert (len(steps), sum(step.lean for step in steps)) == (119, 90)
    rank = observe_rank(timeline, anchor, None, steady_windows(timeline, anchor))
    assert rank.step is not None
    assert rank.step.num <= 29
    assert rank.step.median_s == pytest.approx(0.008)
    assert rank.step.rhythm == ("data", "forward", "backward", "optimizer")


def test_every_step_is_kept_with_what_happened_in_it(tmp_path: Path) -> None:
    script = Script(tmp_path).train(8).span(Kind.EVALUATE, 50)
    timeline = script.train(3).span(Kind.ITERATOR, 20).train(9).timeline()
    series = step_series(timeline, _STEP, steady_windows(timeline, _STEP), rank=0, begin_s=0.0)
    durations = np.frombuffer(series.duration_s, "<f4")
    assert (series.num, len(series.kind), series.evaluations, series.epochs) == (19, 19, (7,), (10,))
    assert durations[3] == pytest.approx(8e-3)
    assert sum(np.frombuffer(column, "<f4")[3] for column in series.phases.values()) == pytest.approx(8e-3)
    assert {series.kind[at] for at in (7, 10)} == {StepKind.IRREGULAR}
    assert [span.name for span in series.spans[:4]] == ["data", "forward", "backward", "optimizer"]


def test_what_each_step_had_to_do_is_kept(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for num in range(1, 6):
        for _ in range(num):
            script.size(8, 32).span(Kind.FORWARD, 2)
        script.span(Kind.BACKWARD, 3).span(Kind.OPTIMIZER, 1)
    timeline = script.timeline()
    series = step_series(timeline, _STEP, steady_windows(timeline, _STEP), rank=None, begin_s=0.0)
    work = {name: np.frombuffer(column, "<f4").tolist() for name, column in series.work.items()}
    assert work == {"calls": [3, 4, 5, 6], "samples": [16, 24, 32, 40], "tokens": [64, 96, 128, 160]}
