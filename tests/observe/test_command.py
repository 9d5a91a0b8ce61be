"""`hotloop observe` on a plain training loop, and on what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import TINY, Observe, Observed, hotloop


def test_the_step_and_its_phases(tiny: Observed) -> None:
    assert tiny.code == 0, tiny.err
    step, phases = tiny.seen["step"], tiny.seen["phases"]
    assert step["num"] >= 30
    assert step["rhythm"] == ["data", "forward", "backward", "optimizer"]
    assert step["p50_s"] <= step["p95_s"] <= step["p99_s"]
    assert sum(phase["share"] for phase in phases.values()) == pytest.approx(1.0)
    assert set(phases) == {"data", "forward", "backward", "optimizer", "other"}


def test_samples_are_those_of_the_training_loader(tiny: Observed) -> None:
    step = tiny.seen["step"]
    mean_s = 16 / step["samples_per_s"]
    assert step["p50_s"] * 0.5 < mean_s < step["p99_s"] * 2
    assert step["tokens_per_s"] is None


def test_evaluation_between_epochs_is_no_step(tiny: Observed) -> None:
    assert tiny.seen["run"]["parts"]["evaluation_s"] > 0
    assert tiny.seen["epoch_steps"] == 4
    assert tiny.seen["anchor"] == {"kind": "optimizer", "slot": 0, "every": 1}


def test_the_account_adds_up_to_the_wall_time(tiny: Observed) -> None:
    run = tiny.seen["run"]
    assert sum(run["parts"].values()) == pytest.approx(run["wall_s"])
    assert abs(run["parts"]["unaccounted_s"]) < 0.2 * run["wall_s"]


def test_json_names_are_the_contract(tiny: Observed) -> None:
    assert {"step", "phases", "ranks", "memory", "run", "coverage", "machine", "schema"} <= set(tiny.seen)
    assert tiny.seen["memory"]["peak_bytes"] > 100 << 20
    assert tiny.seen["coverage"] == []
    assert tiny.seen["exit_code"] is None
    assert all(rank["page_faults"] >= 0 for rank in tiny.seen["ranks"])


def test_the_screen_is_80_columns_wide(tiny: Observed) -> None:
    assert all(len(line) <= 80 for line in tiny.out.splitlines())
    assert "in each: data forward backward optimizer" in tiny.out


def test_nothing_is_left_of_the_run(tiny: Observed) -> None:
    assert sorted(path.name for path in tiny.folder.iterdir()) == [".hotloop", "train.py"]


def test_a_program_that_crashes_keeps_its_traceback(observe: Observe) -> None:
    program = TINY.replace(
        "steps += 1", "steps += 1\n        if steps == 9: raise ValueError('my own error')"
    )
    run = observe(program)
    assert run.code == 3
    assert "ValueError: my own error" in run.err
    assert "exit code 1" in run.err
    assert run.seen["step"]["num"] >= 2


@pytest.mark.slow
def test_a_program_that_ends_after_three_steps(observe: Observe) -> None:
    run = observe(TINY, command=("train.py", "3"))
    assert run.code == 0, run.err
    assert "done after 3" in run.out
    assert run.seen["step"]["num"] == 2
    assert run.seen["exit_code"] == 0
    assert run.seen["total_steps"] == 3
    assert "interpreter_s" in run.seen["run"]["parts"], "no process of the command started another"


@pytest.mark.slow
def test_a_program_that_never_steps(observe: Observe) -> None:
    run = observe("import torch\nprint(torch.ones(2).sum())")
    assert run.code == 3
    assert "took no step" in run.err
    again = hotloop(run.folder, "diagnose")
    assert "the program took no step" in again.stdout
    assert "tensor(2.)" in run.out


def test_a_program_without_torch(observe: Observe) -> None:
    run = observe("print('hello')")
    assert run.code == 2
    assert "never imported torch" in run.err


def test_what_is_not_python(tmp_path: Path) -> None:
    done = hotloop(tmp_path, "observe", "ls")
    assert done.returncode == 2
    assert "'ls' started no Python" in done.stderr


@pytest.mark.parametrize("option", ["-I", "-S", "-E", "-IB"])
def test_python_that_keeps_the_probe_out(observe: Observe, option: str) -> None:
    run = observe("print('ran')", command=("python3", option, "train.py"))
    assert run.code == 2
    assert "nothing of the program could be seen" in run.err
    assert "ran" in run.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("missing.py",), "no script"),
        (("python3", "missing.py"), "no script"),
        (("no-such-program",), "no program"),
        (("--steps", "0", "x.py"), "--steps"),
        (("--steps", "3", "--full", "x.py"), "--full lets the program run to its end"),
        (("--seconds", "3", "--full", "x.py"), "--full lets the program run to its end"),
        (("--seconds", "soon", "x.py"), "not a time"),
        (("--wrong", "x.py"), "--wrong"),
        ((), "COMMAND"),
    ],
)
def test_wrong_use(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = hotloop(tmp_path, "observe", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_json_that_cannot_be_written_is_said_plainly(observe: Observe, tmp_path: Path) -> None:
    (tmp_path / "project" / "train.py").write_text(TINY)
    done = hotloop(tmp_path / "project", "observe", "--json", "/no/such/folder/x.json", "train.py", "8")
    assert done.returncode == 4
    assert "could not be written" in done.stderr
    assert "output of" not in done.stderr, "the program was started for nothing"


@pytest.mark.slow
def test_quiet_shows_the_result_alone(observe: Observe) -> None:
    run = observe(TINY, "--quiet", command=("train.py", "12"))
    assert run.err == ""
    assert json.dumps(run.seen["step"]["rhythm"])


def test_the_machine_was_watched_meanwhile(tiny: Observed) -> None:
    monitors = tiny.seen["monitors"]
    busy = monitors["metrics"]["cpu_busy_ratio"]
    assert 0 < busy["mean"] <= busy["p95"] <= busy["max"] <= 1
    assert len(busy["samples"]) == len(monitors["times_s"])
    assert monitors["metrics"]["memory_used_bytes"]["mean"] > 100 << 20


@pytest.mark.slow
def test_the_arithmetic_of_a_step_is_counted(observe: Observe) -> None:
    seen = observe(TINY, "--steps", "20", deep=True).seen
    deep, efficiency = seen["deep"], seen["efficiency"]
    assert efficiency["flop"] == deep["flops"]["flop"] > 0
    assert efficiency["flop_per_s"] == pytest.approx(efficiency["flop"] / seen["step"]["mean_s"])
    assert (efficiency["mfu"] is None) == (efficiency["why_no_peak"] is not None)
    assert any(row["flop"] for row in deep["operators"]["operators"])
