"""The account of timelines whose truth is known: every part by its name, and the sum is the wall time."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.model.observation import Anchor, Phase, PhaseTime, RunAccount
from hotloop.observe.run_account.account import account, split_like
from hotloop.observe.steps.rhythm import find_anchor
from hotloop.probe.record.events import Kind, begin, end

from .synthetic import Script

_MS = 1e-3


def _account(
    script: Script, begin_s: float = -2.0, after_s: float = 0.0, *, simulates: bool = False
) -> RunAccount:
    """Account for a run in which torch was there at time 0."""
    timeline = script.timeline()
    end_s = script.now * 1e-9 + after_s
    run = account(timeline, find_anchor(timeline.spans), begin_s, end_s, simulates=simulates)
    assert sum(run.parts.values()) == pytest.approx(run.wall_s)
    assert run.parts["unaccounted_s"] == pytest.approx(0.0, abs=1e-9)
    return run


def test_the_start_is_told_apart(tmp_path: Path) -> None:
    script = Script(tmp_path).span(Kind.IMPORT, 300).wait(500).span(Kind.ITERATOR, 40)
    parts = _account(script.train(6, data_ms=2)).parts
    assert parts["import_s"] == pytest.approx(2.3), "before torch and after"
    assert parts["setup_s"] == pytest.approx(0.5)
    assert parts["first_batch_s"] == pytest.approx(42 * _MS)
    assert parts["first_step_s"] == pytest.approx(6 * _MS)
    assert parts["step_backward_s"] == pytest.approx(15 * _MS)


def test_a_batch_looked_at_in_the_set_up_does_not_begin_the_first_step(tmp_path: Path) -> None:
    script = Script(tmp_path).span(Kind.ITERATOR, 1).span(Kind.DATA, 2).wait(700)
    parts = _account(script.span(Kind.ITERATOR, 1).train(4)).parts
    assert parts["setup_s"] == pytest.approx(0.7)
    assert parts["first_batch_s"] == pytest.approx(5 * _MS)


def test_an_evaluation_between_epochs(tmp_path: Path) -> None:
    script = Script(tmp_path).span(Kind.ITERATOR, 1).train(5)
    script.span(Kind.ITERATOR, 10, 1)
    for _ in range(3):
        script.span(Kind.DATA, 2, 1).wait(1).span(Kind.EVALUATE, 4).wait(3)
    script.span(Kind.DATA, 1, 1).wait(20)  # the loader has no more, the metrics of the pass
    script.span(Kind.ITERATOR, 30).span(Kind.DATA, 51).train(5, data_ms=0)
    run = _account(script)
    assert run.num_evaluations == 1
    assert run.parts["evaluation_s"] == pytest.approx((3 * 10 + 1 + 20) * _MS)
    assert run.parts["epoch_boundary_s"] == pytest.approx((10 + 30 + 50) * _MS), (
        "what fills the queue is in it"
    )
    assert run.num_epochs == 2


def test_an_evaluation_before_the_first_step_is_no_set_up(tmp_path: Path) -> None:
    script = Script(tmp_path).wait(100)
    for _ in range(2):
        script.span(Kind.EVALUATE, 4).wait(1)
    run = _account(script.train(5))
    assert run.parts["setup_s"] == pytest.approx(0.1)
    assert run.parts["evaluation_s"] == pytest.approx(10 * _MS)


def test_a_policy_that_acts_in_an_environment_is_not_evaluated(tmp_path: Path) -> None:
    script = Script(tmp_path).train(5)
    for _ in range(3):
        script.span(Kind.EVALUATE, 4).wait(6)
    run = _account(script.train(5), simulates=True)
    assert run.parts["rollout_s"] == pytest.approx(30 * _MS)
    assert "evaluation_s" not in run.parts
    assert run.num_evaluations == 0


@pytest.mark.parametrize(("num_calls", "name"), [(60, "rollout_s"), (20, "evaluation_s")])
def test_a_model_that_acts_more_often_than_it_learns_plays(tmp_path: Path, num_calls: int, name: str) -> None:
    """PPO on poles of the program's own: 64 steps of its environment, 16 of the optimizer, no library and no loader."""
    script = Script(tmp_path)
    for _ in range(2):
        for _ in range(8):
            script.span(Kind.FORWARD, 2).span(Kind.BACKWARD, 4).span(Kind.OPTIMIZER, 1).wait(1)
        for _ in range(num_calls // 2):
            script.span(Kind.EVALUATE, 1).wait(1)
    run = _account(script)
    assert {"rollout_s", "evaluation_s"} & run.parts.keys() == {name}


def test_batches_of_a_loader_are_evaluated_whatever_the_program_imports(tmp_path: Path) -> None:
    script = Script(tmp_path).train(5).span(Kind.DATA, 2, 1).span(Kind.EVALUATE, 4).train(5)
    assert "evaluation_s" in _account(script, simulates=True).parts


def test_fetching_one_batch_ahead_does_not_hide_an_evaluation(tmp_path: Path) -> None:
    script = Script(tmp_path).train(5).span(Kind.ITERATOR, 0, 1)
    script.span(Kind.DATA, 2, 1).span(Kind.DATA, 2, 1).span(Kind.EVALUATE, 3).span(Kind.DATA, 2, 1)
    script.span(Kind.EVALUATE, 3).train(5)
    assert _account(script).parts["evaluation_s"] == pytest.approx(12 * _MS)


def test_an_evaluation_that_keeps_a_graph(tmp_path: Path) -> None:
    script = Script(tmp_path).train(5)
    for _ in range(3):
        script.span(Kind.DATA, 2, 1).span(Kind.SCORE, 4)
    run = _account(script.train(5))
    assert run.parts["evaluation_s"] == pytest.approx(18 * _MS)
    assert run.scored_with_gradients_s == pytest.approx(12 * _MS)
    assert run.num_evaluations == 1


def test_a_model_that_trains_in_evaluation_mode_is_not_evaluated(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(6):
        script.span(Kind.DATA, 1).span(Kind.SCORE, 2).wait(1).span(Kind.SCORE, 2, 1)
        script.span(Kind.BACKWARD, 3).span(Kind.OPTIMIZER, 1)
    run = _account(script)
    assert run.scored_with_gradients_s == 0
    assert "evaluation_s" not in run.parts
    assert run.parts["step_forward_s"] == pytest.approx(5 * 4 * _MS)


def test_the_garbage_collector_comes_in_the_middle_of_anything(tmp_path: Path) -> None:
    script = Script(tmp_path).train(3).mark(begin(Kind.FORWARD)).wait(1)
    script.mark(begin(Kind.COLLECT)).wait(30).mark(end(Kind.COLLECT)).wait(1).mark(end(Kind.FORWARD))
    run = _account(script.span(Kind.BACKWARD, 3).span(Kind.OPTIMIZER, 1).train(3))
    assert run.num_collections == 1
    assert run.collection_s == pytest.approx(30 * _MS)
    assert run.parts["step_forward_s"] == pytest.approx((5 * 2 + 32) * _MS), "it is a part of the forward"


@pytest.mark.parametrize("every", [1, 5])
def test_a_checkpoint_is_named_however_often_it_is_saved(tmp_path: Path, every: int) -> None:
    script = Script(tmp_path)
    for _ in range(10):
        script.train(every).span(Kind.SAVE, 7)
    run = _account(script.train(1))
    assert run.parts["checkpoint_s"] == pytest.approx(70 * _MS)
    assert run.num_checkpoints == 10
    assert run.parts["step_other_s"] + run.parts.get("irregular_step_s", 0) == pytest.approx(
        (10 * every) * _MS, abs=1e-9
    )


def test_logging_in_the_loss_and_between_steps(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(6):
        script.span(Kind.FORWARD, 2).wait(1).span(Kind.LOG, 4).wait(1).span(Kind.BACKWARD, 3)
        script.span(Kind.OPTIMIZER, 1).span(Kind.LOG, 5)
    parts = _account(script).parts
    assert parts["logging_s"] == pytest.approx((6 * 4 + 6 * 5) * _MS)
    assert parts["step_forward_s"] == pytest.approx(5 * 4 * _MS), (
        "the loss without the line that is printed in it"
    )


def test_compilation_in_a_forward_is_no_forward(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.mark(begin(Kind.FORWARD)).span(Kind.COMPILE, 900).wait(2).mark(end(Kind.FORWARD))
    script.span(Kind.BACKWARD, 3).span(Kind.OPTIMIZER, 1).train(5)
    script.mark(begin(Kind.FORWARD)).span(Kind.COMPILE, 400).wait(2).mark(end(Kind.FORWARD))
    run = _account(script.span(Kind.BACKWARD, 3).span(Kind.OPTIMIZER, 1).train(5))
    assert run.parts["compilation_s"] == pytest.approx(1.3)
    assert run.num_compilations == 2
    assert run.parts["step_forward_s"] == pytest.approx(11 * 2 * _MS)


def test_workers_that_end_within_the_last_fetch_are_the_epochs(tmp_path: Path) -> None:
    script = Script(tmp_path).train(5)
    script.mark(begin(Kind.DATA)).span(Kind.WORKERS_END, 60).wait(1).mark(end(Kind.DATA))
    parts = _account(script.span(Kind.ITERATOR, 5).train(5)).parts
    assert parts["epoch_boundary_s"] == pytest.approx(65 * _MS)


def test_what_comes_after_training(tmp_path: Path) -> None:
    script = Script(tmp_path).train(5).span(Kind.EVALUATE, 10).wait(5).span(Kind.EVALUATE, 10)
    script.wait(200).span(Kind.SAVE, 30).mark(end(Kind.EXIT))
    parts = _account(script, after_s=0.15).parts
    assert parts["evaluation_s"] == pytest.approx(25 * _MS)
    assert parts["after_training_s"] == pytest.approx(0.201)
    assert parts["checkpoint_s"] == pytest.approx(30 * _MS)
    assert parts["shutdown_s"] == pytest.approx(0.15)


def test_a_step_that_was_not_finished_does_not_come_after_training(tmp_path: Path) -> None:
    """It was ended, or interrupted, while its next step's backward was under way."""
    script = Script(tmp_path).train(5).span(Kind.FORWARD, 20).wait(700)
    timeline = script.timeline()
    run = account(timeline, find_anchor(timeline.spans), -2.0, script.now * 1e-9, ended_early=True)
    assert run.parts["after_last_step_s"] == pytest.approx(0.701)
    assert "after_training_s" not in run.parts
    assert sum(run.parts.values()) == pytest.approx(run.wall_s)


def test_a_program_that_is_held_to_be_ended(tmp_path: Path) -> None:
    script = Script(tmp_path).train(5).mark(begin(Kind.PAUSE))
    parts = _account(script, after_s=0.3).parts
    assert parts["held_by_hotloop_s"] == pytest.approx(0.3)
    assert not {"shutdown_s", "after_training_s"} & set(parts)


def test_a_program_that_is_ended_under_a_profiler_has_not_come_to_its_end(tmp_path: Path) -> None:
    script = Script(tmp_path).train(5).mark(begin(Kind.DEEP, 3))
    parts = _account(script.span(Kind.DATA, 1).span(Kind.FORWARD, 40).wait(300)).parts
    assert parts["deep_windows_s"] == pytest.approx(0.342), "from the end of the last step"
    assert "after_training_s" not in parts


def test_a_forward_without_gradients_in_every_step_is_the_step_s_own(tmp_path: Path) -> None:
    """A frozen trunk: it was `evaluation` in the first step of each epoch, and a real one stays what it is."""
    script = Script(tmp_path)
    for _ in range(3):
        script.span(Kind.ITERATOR, 1)
        _with_trunk(script, 5)
    for _ in range(4):
        script.span(Kind.DATA, 1, 1).span(Kind.EVALUATE, 10)
    run = _account(_with_trunk(script.span(Kind.ITERATOR, 1), 5))
    assert run.parts["evaluation_s"] == pytest.approx(4 * 11 * _MS)
    assert run.num_evaluations == 1
    assert run.parts["step_forward_s"] == pytest.approx(19 * 32 * _MS)


def _with_trunk(script: Script, num: int) -> Script:
    for _ in range(num):
        script.span(Kind.DATA, 1).span(Kind.EVALUATE, 30).span(Kind.FORWARD, 2).span(Kind.BACKWARD, 3)
        script.span(Kind.OPTIMIZER, 1)
    return script


def test_inference_is_no_evaluation(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(8):
        script.span(Kind.DATA, 1).span(Kind.EVALUATE, 5).wait(1)
    run = _account(script)
    assert run.num_evaluations == 0
    assert run.parts["step_forward_s"] == pytest.approx(35 * _MS)
    assert "evaluation_s" not in run.parts


def test_a_closure_counts_once(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(5):
        script.mark(begin(Kind.OPTIMIZER))
        for _ in range(3):
            script.span(Kind.FORWARD, 2).wait(0.5).span(Kind.BACKWARD, 3)
        script.mark(end(Kind.OPTIMIZER))
    assert _account(script).parts["step_forward_s"] == pytest.approx(4 * 7.5 * _MS)


def test_without_a_rhythm_only_what_has_its_own_name_is_told(tmp_path: Path) -> None:
    timeline = Script(tmp_path).wait(100).span(Kind.SAVE, 50).timeline()
    run = account(timeline, None, -1.0, 0.15)
    assert run.parts == pytest.approx(
        {"import_s": 1.0, "setup_s": 0.1, "checkpoint_s": 0.05, "unaccounted_s": 0.0}
    )
    assert run.num_steps is None


def test_waits_for_other_ranks_are_communication_in_the_account_too(tmp_path: Path) -> None:
    """The page showed a step with 20 ms of communication, and a run in which all steps together had half of that."""
    run = _account(Script(tmp_path).train(10))
    phases = {
        Phase.DATA: PhaseTime(0.001, 0.1),
        Phase.BACKWARD: PhaseTime(0.001, 0.1),
        Phase.COMMUNICATION: PhaseTime(0.004, 0.2),
        Phase.OTHER: PhaseTime(0.006, 0.6),
    }
    split = split_like(run, phases)
    names = [f"step_{phase.value}_s" for phase in Phase if phase is not Phase.OTHER]
    spent_s = sum(run.parts.get(name, 0.0) for name in names)
    assert split.parts["step_communication_s"] == pytest.approx(spent_s / 2)
    assert split.parts["step_backward_s"] == pytest.approx(spent_s / 4)
    assert split.parts["step_other_s"] == run.parts["step_other_s"]
    assert sum(split.parts.values()) == pytest.approx(sum(run.parts.values()))


@pytest.mark.parametrize(("is_command", "part"), [(True, "interpreter_s"), (False, "launcher_s")])
def test_what_comes_before_python_is_a_launcher_s_where_there_is_one(
    is_command: bool, part: str, tmp_path: Path
) -> None:
    timeline = Script(tmp_path).train(4).timeline()
    timeline.python_s, timeline.is_command = -1.5, is_command
    run = account(timeline, Anchor("optimizer", 0, 1), -2.0, 0.1)
    assert run.parts[part] == pytest.approx(0.5)
    assert run.parts["import_s"] == pytest.approx(1.5)


def test_steps_of_which_only_the_end_was_recorded_are_split_like_the_others(tmp_path: Path) -> None:
    script = Script(tmp_path).span(Kind.ITERATOR, 1).train(11)
    script.mark(begin(Kind.LEAN))
    for _ in range(10):
        script.wait(7).span(Kind.LOG, 5).span(Kind.OPTIMIZER, 0)
    script.span(Kind.SAVE, 40).wait(7).span(Kind.OPTIMIZER, 0)
    script.wait(107).span(Kind.OPTIMIZER, 0).mark(end(Kind.LEAN))  # something that nobody saw
    run = _account(script.train(5))
    assert run.num_steps == 28
    assert run.num_regular_steps == 28 - 1, "all but the first"
    assert run.parts["irregular_step_s"] == pytest.approx(99 * _MS, rel=0.01)
    assert run.parts["logging_s"] == pytest.approx(50 * _MS)
    assert run.parts["checkpoint_s"] == pytest.approx(40 * _MS)
    timed = 10 + 5
    lean_ms = 11 * 7 + 1 + 8  # the last timed step's rest of 1 ms falls into the first lean one
    backward = timed * 3 + lean_ms * 3 / 8
    assert run.parts["step_backward_s"] == pytest.approx(backward * _MS, rel=0.01)
