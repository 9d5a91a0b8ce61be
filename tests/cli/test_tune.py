"""`hotloop tune` around the trials: options, files, exit codes, the names in the JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli import app
from hotloop.cli import tune as tune_command
from hotloop.model.errors import ExitCode
from hotloop.model.goal import Aim, Goal, Reached
from hotloop.model.optimization import Numerics
from hotloop.model.tuning import TuneResult
from hotloop.tune import pipeline
from hotloop.tune.pipeline import TuneOrder
from hotloop.tune.plan.plan_file import read_plan

from ..report.results import BASELINE, STEPS, TRIALS, empty, full
from ..tune.plans import BF16, WORKERS, plan_for, write_plan
from .commands import hotloop

Tuned = Callable[[TuneResult], list[TuneOrder]]


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tuned:
    """Let every session end with this result; the orders that were given are collected."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    orders: list[TuneOrder] = []

    def prepare(result: TuneResult) -> list[TuneOrder]:
        def tune(
            order: TuneOrder,
            progress: Callable[[str], None],
            note: Callable[[str], None],
            standing: Callable[[str], None],
            warn: Callable[[str], None],
        ) -> pipeline.Tuned:
            orders.append(order)
            progress("at work")
            standing("2 trials done")
            note("hotloop: a session")
            return pipeline.Tuned(result, "20260101-120000")

        monkeypatch.setattr(tune_command, "tune", tune)
        return orders

    return prepare


def _with_plan() -> TuneResult:
    return full(plan=plan_for(None, BF16, WORKERS))


class TestOptions:
    def test_the_defaults(self, tuned: Tuned) -> None:
        orders = tuned(empty())
        assert app.run(["tune", "train.py", "--budget", "theirs"]) == 0
        (order,) = orders
        assert order.words == ("train.py", "--budget", "theirs")
        assert order.budget_s == 600
        assert order.wishes.allow is Numerics.TOLERANCE
        assert order.wishes.only == order.wishes.skip == ()
        assert not order.resume

    def test_all_of_them(self, tuned: Tuned) -> None:
        orders = tuned(empty())
        wishes = "--budget 2.5m --allow semantic --only channels_last,compile --skip autocast_bf16 --resume"
        words = f"{wishes} -- {sys.executable} -m train"
        assert app.run(["tune", *words.split()]) == 0
        (order,) = orders
        assert order.words == (sys.executable, "-m", "train")
        assert order.budget_s == 150
        assert order.wishes.allow is Numerics.SEMANTIC
        assert order.wishes.only == ("channels_last", "compile")
        assert order.wishes.skip == ("autocast_bf16",)
        assert order.resume

    @pytest.mark.parametrize("words", [["--budget", "soon"], ["--budget", "0"], ["--allow", "anything"], []])
    def test_wrong_use_is_two(self, tuned: Tuned, words: list[str]) -> None:
        orders = tuned(empty())
        assert app.run(["tune", *words, *(["train.py"] if words else [])]) == ExitCode.USAGE
        assert orders == []


class TestGoals:
    def test_what_the_plan_is_for(self, tuned: Tuned) -> None:
        orders = tuned(empty())
        assert (
            app.run(["tune", "--fit", "24GB", "--price-per-hour", "2.5", "--power-price", "0.3", "train.py"])
            == 0
        )
        assert app.run(["tune", "--goal", "memory", "--max-slowdown", "50", "train.py"]) == 0
        first, second = (order.wishes.aim for order in orders)
        assert first == Aim(fit_bytes=24 * 10**9, price_per_hour=2.5, power_price=0.3)
        assert second == Aim(goal=Goal.MEMORY, max_slowdown=0.5)

    @pytest.mark.parametrize(
        "words",
        [
            "--goal memory --fit 1GB",
            "--goal cost",
            "--fit 24",
            "--fit 0GB",
            "--goal small",
            "--max-slowdown -1",
        ],
    )
    def test_goals_that_do_not_go_together_are_two(self, tuned: Tuned, words: str) -> None:
        orders = tuned(empty())
        assert app.run(["tune", *words.split(), "train.py"]) == ExitCode.USAGE
        assert orders == []

    def test_a_limit_that_was_not_met_is_one(self, tuned: Tuned) -> None:
        tuned(empty(aim=Aim(fit_bytes=1 << 20), goal=Reached(fits=False)))
        assert app.run(["tune", "--fit", "1MiB", "train.py"]) == ExitCode.GATE

    def test_a_limit_of_which_nothing_is_known_is_five(self, tuned: Tuned) -> None:
        tuned(empty(aim=Aim(fit_bytes=1 << 20), goal=Reached()))
        assert app.run(["tune", "--fit", "1MiB", "train.py"]) == ExitCode.UNDECIDED

    def test_a_program_that_fits_as_it_is_is_done(self, tuned: Tuned) -> None:
        tuned(empty(aim=Aim(fit_bytes=1 << 40), goal=Reached(fits=True)))
        assert app.run(["tune", "--fit", "1TiB", "train.py"]) == ExitCode.DONE


class TestFiles:
    def test_the_plan_is_written_and_can_be_run(
        self, tuned: Tuned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        tuned(_with_plan())
        assert app.run(["tune", "train.py"]) == ExitCode.DONE
        assert [step.name for step in read_plan(tmp_path / "hotloop.toml").steps] == [BF16.name, WORKERS.name]
        shown = capsys.readouterr()
        assert "  hotloop run python train.py --epochs 3\n" in shown.out
        assert "at work" in shown.err
        assert "at work" not in shown.out

    def test_another_name_is_in_the_command_to_go_on_with(
        self, tuned: Tuned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        tuned(_with_plan())
        assert app.run(["tune", "--plan", "fast.toml", "train.py"]) == ExitCode.DONE
        assert (tmp_path / "fast.toml").exists()
        assert "hotloop run --plan fast.toml python train.py" in capsys.readouterr().out

    def test_the_plan_before_is_kept(self, tuned: Tuned, tmp_path: Path) -> None:
        before = write_plan(tmp_path, None, WORKERS).read_text()
        tuned(_with_plan())
        assert app.run(["tune", "train.py"]) == ExitCode.DONE
        assert (tmp_path / "hotloop.previous.toml").read_text() == before

    def test_what_is_not_a_plan_is_never_overwritten(self, tuned: Tuned, tmp_path: Path) -> None:
        other = tmp_path / "pyproject.toml"
        other.write_text("[tool.ruff]\n")
        orders = tuned(_with_plan())
        assert app.run(["tune", "--plan", "pyproject.toml", "train.py"]) == ExitCode.USAGE
        assert orders == [], "said before the trials, not after them"
        assert other.read_text() == "[tool.ruff]\n"

    @pytest.mark.parametrize("option", ["--plan", "--json"])
    def test_a_folder_that_is_not_there_is_said_before_the_trials(
        self, tuned: Tuned, option: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        orders = tuned(_with_plan())
        assert app.run(["tune", option, "nowhere/file", "train.py"]) == ExitCode.MACHINE
        assert orders == []
        assert "there is no folder" in capsys.readouterr().err

    def test_an_empty_plan_is_done_and_says_so(
        self, tuned: Tuned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        tuned(empty(plan=plan_for(None)))
        assert app.run(["tune", "train.py"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("No change was proven faster: of 2 trials, none beat the program")
        assert "run with the plan" not in shown
        assert read_plan(tmp_path / "hotloop.toml").steps == ()

    def test_an_empty_result_leaves_a_proven_plan_alone(
        self, tuned: Tuned, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = write_plan(tmp_path, None, WORKERS).read_text()
        tuned(empty(plan=plan_for(None)))
        assert app.run(["tune", "train.py"]) == ExitCode.DONE
        assert (tmp_path / "hotloop.toml").read_text() == before
        assert "hotloop.toml keeps the plan that was proven before" in capsys.readouterr().err

    def test_interrupted_without_a_plan_leaves_the_plan_before(self, tuned: Tuned, tmp_path: Path) -> None:
        before = write_plan(tmp_path, None, WORKERS).read_text()
        tuned(empty(interrupted=True))
        assert app.run(["tune", "train.py"]) == ExitCode.INTERRUPTED
        assert (tmp_path / "hotloop.toml").read_text() == before

    def test_interrupted_with_a_plan_writes_it(self, tuned: Tuned, tmp_path: Path) -> None:
        tuned(full(plan=plan_for(None, BF16), interrupted=True))
        assert app.run(["tune", "train.py"]) == ExitCode.INTERRUPTED
        assert [step.name for step in read_plan(tmp_path / "hotloop.toml").steps] == [BF16.name]

    def test_quiet_says_nothing_but_the_result(
        self, tuned: Tuned, capsys: pytest.CaptureFixture[str]
    ) -> None:
        tuned(empty())
        app.run(["tune", "--quiet", "train.py"])
        shown = capsys.readouterr()
        assert shown.err == ""
        assert shown.out.startswith("No change was proven faster")


class TestJson:
    def _written(self, tuned: Tuned, tmp_path: Path, result: TuneResult) -> Any:
        tuned(result)
        assert app.run(["tune", "--json", "result.json", "train.py"]) == ExitCode.DONE
        text = (tmp_path / "result.json").read_text()
        return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))

    def test_the_names_of_the_contract(self, tuned: Tuned, tmp_path: Path) -> None:
        raw = self._written(tuned, tmp_path, full())
        assert raw["schema"] == 1
        assert raw["baseline"]["step_s"] == BASELINE.step_s
        assert raw["floor"] == 0.0117
        assert raw["plan"]["steps"][0]["name"] == STEPS[0].name
        assert raw["plan"]["steps"][0]["params"] == STEPS[0].params
        assert {"ratio", "low", "high"} <= raw["plan"]["steps"][1].keys()
        assert raw["plan"]["speedup"] == {"ratio": 2.1, "low": 1.98, "high": 2.23}
        assert raw["plan"]["parity"]["passed"] is True
        assert {"name", "reason"} <= raw["refused"][0].keys()
        assert [trial["key"] for trial in raw["trials"]] == [trial.key for trial in TRIALS]

    def test_what_is_not_a_number_is_null(self, tuned: Tuned, tmp_path: Path) -> None:
        outcome = self._written(tuned, tmp_path, full())["trials"][0]["outcome"]
        assert outcome["pairs"] == [[0.4, 0.41, None]]
        assert outcome["step_s"] == [0.12, None]
        assert outcome["one_off_s"] is None

    def test_an_empty_plan(self, tuned: Tuned, tmp_path: Path) -> None:
        raw = self._written(tuned, tmp_path, empty(floor=None))
        assert raw["plan"]["steps"] == []
        assert raw["plan"]["speedup"] is None
        assert raw["floor"] is None


class TestRealCommands:
    """What cannot be tuned at all is said by the real thing, with the exit code of the contract."""

    @pytest.mark.parametrize(
        ("words", "message", "code"),
        [
            (["nothing.py"], "there is no script 'nothing.py'", ExitCode.USAGE),
            (["no-such-program"], "there is no program 'no-such-program'", ExitCode.USAGE),
            (["--only", "autocast_bf61", "plain.py"], "there is no optimization named", ExitCode.USAGE),
            (["--resume", "plain.py"], "there is no session in", ExitCode.USAGE),
            (["plain.py"], "torch", ExitCode.USAGE),
            (["ls"], "Python", ExitCode.USAGE),
            (["crash.py"], "ZeroDivisionError", ExitCode.PROGRAM_FAILED),
        ],
    )
    def test_it_is_said(self, tmp_path: Path, words: list[str], message: str, code: ExitCode) -> None:
        (tmp_path / "plain.py").write_text("print('no torch in here')\n")
        (tmp_path / "crash.py").write_text("import torch\n1 / 0\n")
        done = hotloop("tune", *words, cwd=tmp_path)
        assert message in done.stderr
        assert done.returncode == code
        assert done.stdout == ""
        assert not (tmp_path / "hotloop.toml").exists()
        assert "Traceback" not in done.stderr or words == ["crash.py"]

    def test_a_damaged_session_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "plain.py").write_text("print('no torch in here')\n")
        (tmp_path / ".hotloop").mkdir()
        (tmp_path / ".hotloop" / "s.sqlite").write_bytes(b"garbage that is no database at all" * 40)
        done = hotloop("tune", "--resume", "plain.py", cwd=tmp_path)
        assert done.returncode == ExitCode.USAGE
        assert "is damaged" in done.stderr
        assert "mv " in done.stderr
