"""A result is shown where it cannot be stored, and that is said before the program runs."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path

import msgspec
import pytest

from hotloop.cli import diagnose, files, observe, tune
from hotloop.cli.app import run
from hotloop.model.errors import ExitCode
from hotloop.store.session import new_session

from ..report.rich_session import content

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program whose run is known."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    seen = msgspec.structs.replace(content(40).observation, exit_code=None)
    for module in (observe, diagnose):
        monkeypatch.setattr(module, "before_run", lambda *_: ())
        monkeypatch.setattr(module, "observe", lambda *_: seen)
        monkeypatch.setattr(module, "say_whose_output", lambda screen, _: screen.note("the program begins"))
    return tmp_path


@pytest.mark.parametrize("words", [["observe"], ["diagnose", "--no-ceilings"]], ids=["observe", "diagnose"])
def test_a_folder_that_holds_no_sessions_is_said_first_and_the_result_is_shown(
    folder: Path, words: list[str], capsys: Captured
) -> None:
    (folder / ".hotloop").touch()
    assert run([*words, "train.py"]) == ExitCode.DONE
    captured = capsys.readouterr()
    before, _, after = captured.err.partition("the program begins")
    for said in (before, after):
        assert f"no session can be stored in {folder / '.hotloop'}: " in said
        assert "run it from a folder that you may write to" in said
    assert "a step" in captured.out.lower()
    assert "next" in captured.out


def test_without_a_session_the_next_step_is_to_observe_again(folder: Path, capsys: Captured) -> None:
    (folder / ".hotloop").touch()
    run(["observe", "train.py"])
    unstored = capsys.readouterr().out
    (folder / ".hotloop").unlink()
    run(["observe", "train.py"])
    assert "hotloop diagnose python train.py" in unstored
    assert "hotloop diagnose python train.py" not in capsys.readouterr().out


def test_tune_does_not_begin_where_its_trials_cannot_be_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (folder / ".hotloop").touch()
    monkeypatch.setattr(tune, "before_run", lambda *_: pytest.fail("it began"))
    assert run(["tune", "train.py"]) == ExitCode.MACHINE
    assert "no session can be stored in" in capsys.readouterr().err


class TestFullDisk:
    @pytest.fixture(autouse=True)
    def _full(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_space(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(files, "_replace", no_space)

    def test_a_page_that_cannot_be_written_is_no_failure_of_the_run(self, capsys: Captured) -> None:
        assert run(["observe", "train.py"]) == ExitCode.DONE
        captured = capsys.readouterr()
        assert "no page was written" in captured.err
        assert "free some space" in captured.err
        assert "to write the page: hotloop report" in captured.err
        assert "next" in captured.out

    @pytest.mark.parametrize("option", ["--html", "--markdown", "--json"])
    def test_a_report_that_cannot_be_written_is_one(
        self, folder: Path, option: str, capsys: Captured
    ) -> None:
        with contextlib.closing(new_session(folder, "s")) as session:
            session.put("observation", content(40).observation)
        assert run(["report", option, "report.out"]) == ExitCode.MACHINE
        said = capsys.readouterr().err
        assert "report.out cannot be written: No space left on device" in said
        assert "free some space, or choose a place on another disk" in said

    def test_figures_that_cannot_be_written_do_not_hide_the_result(self, capsys: Captured) -> None:
        assert run(["observe", "--json", "figures.json", "train.py"]) == ExitCode.MACHINE
        captured = capsys.readouterr()
        assert "next" in captured.out
        assert "figures.json cannot be written" in captured.err
