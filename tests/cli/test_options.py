"""Units, lists, and where text goes."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from hotloop.cli.app import run
from hotloop.cli.files import check_writable, write_json, write_text
from hotloop.cli.options import Names, TimeSpan
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.report.terminal.screen import Screen


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("10m", 600),
        ("1h", 3600),
        ("0.5 h", 1800),
        (" 2.5m ", 150),
        ("4m30s", 270),
        ("1h 30m", 5400),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert TimeSpan().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1", "1d", "ten", "1e3", "5 m s", "0m"])
def test_what_is_no_time_is_said_with_what_is(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 90, 90s, 10m, 4m30s, 1h or 50ms"):
        TimeSpan().convert(text, None, None)


@pytest.mark.parametrize(("text", "names"), [("a,b", ("a", "b")), (" a , ,b,", ("a", "b")), ("", ())])
def test_lists(text: str, names: tuple[str, ...]) -> None:
    assert Names().convert(text, None, None) == names


class TestFiles:
    def test_a_file_is_written_whole_or_not_at_all(self, tmp_path: Path) -> None:
        path = tmp_path / "result.json"
        path.write_text("the one before")
        with pytest.raises(TypeError):
            write_json(path, object())
        assert path.read_text() == "the one before"
        write_json(path, {"floor": float("nan"), "name": "é"})
        assert path.read_text() == '{\n  "floor": null,\n  "name": "é"\n}\n'
        assert [file.name for file in tmp_path.iterdir()] == ["result.json"]

    def test_where_nothing_can_be_written_is_said(self, tmp_path: Path) -> None:
        for refused in (write_text, lambda path, _: check_writable(path)):
            with pytest.raises(HotloopError, match="nowhere") as caught:
                refused(tmp_path / "nowhere" / "file", "text")
            assert caught.value.code is ExitCode.MACHINE


class TestScreen:
    def test_results_and_progress_go_apart(self, capsys: pytest.CaptureFixture[str]) -> None:
        screen = Screen()
        screen.progress("at work")
        screen.note("[a note]")
        screen.show("the result")
        shown = capsys.readouterr()
        assert shown.out == "the result\n"
        assert shown.err == "hotloop 0:00  at work\n[a note]\n"

    def test_without_a_terminal_progress_is_a_line_now_and_then(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        times = iter([100.0, 100.0, 101.0, 111.0, 112.0])
        monkeypatch.setattr("hotloop.report.terminal.screen.monotonic", lambda: next(times))
        screen = Screen()
        for number in range(3):
            screen.progress(f"measuring: {number}")
        screen.progress("the next stage")  # is said when it begins
        assert capsys.readouterr().err.splitlines() == [
            "hotloop 0:00  measuring: 0",
            "hotloop 0:11  measuring: 2",
            "hotloop 0:12  the next stage",
        ]

    def test_colours_are_off_when_asked(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.delenv("NO_COLOR", raising=False)
        Screen().out.print("word", style="red")
        assert "\x1b[31m" in capsys.readouterr().out
        Screen(no_color=True).out.print("word", style="red")
        assert "\x1b[31m" not in capsys.readouterr().out
        monkeypatch.setenv("NO_COLOR", "1")
        Screen().out.print("word", style="red")
        assert "\x1b[31m" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["machine", "--fresh", "--json"],
        ["data", "bench", "tests", "--json"],
        ["sessions", "--keep", "0", "--json"],
        ["report", "--perfetto"],
    ],
    ids=" ".join,
)
def test_that_a_result_cannot_be_written_is_said_before_anything_is_done(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "nowhere/result"]) == ExitCode.MACHINE
    said = capsys.readouterr()
    assert "nowhere/result could not be written" in said.err
    assert "measuring" not in said.err
