"""What is shown may be lost: a closed, full or narrow terminal costs neither the result nor a traceback."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from rich.text import Text

from hotloop.cli import app
from hotloop.cli.files import write_text
from hotloop.launch.isolation.decide import NO_LANDLOCK, NO_NAMESPACES
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.report.terminal.screen import Screen

COMMAND = f"{sys.executable} -m hotloop"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("import torch\ntorch.autograd.set_detect_anomaly(True)  # é\n")
    events = [{"ph": "X", "cat": "cpu_op", "name": "█é\x1b", "pid": 1, "tid": 1, "ts": 1.0, "dur": 5.0}]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    return tmp_path


def _shell(folder: Path, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
        timeout=60,
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{} lint a.py >&-", 1),
        ("{} lint a.py >&- 2>&-", 1),
        ("{} lint a.py > /dev/full", 4),
        ("{} lint none.py 2> /dev/full", 2),
        ("mkdir d; cd d; rmdir ../d; {} lint .", 4),
        ("ulimit -n 10; {} observe a.py", 4),
        ("ulimit -v 150000; {} trace analyze trace.json", None),
        ("PYTHONIOENCODING=ascii {} trace analyze trace.json", 0),
    ],
)
def test_no_traceback(project: Path, line: str, code: int | None) -> None:
    done = _shell(project, line.format(COMMAND))
    assert "Traceback" not in done.stderr
    assert code is None or done.returncode == code


def test_a_result_is_written_before_it_is_shown(project: Path) -> None:
    done = _shell(project, f"{COMMAND} trace analyze trace.json --json out.json > /dev/full")
    assert done.returncode == 4
    assert json.loads((project / "out.json").read_text())["traces"]


def test_what_is_no_regular_file_is_written_through(project: Path) -> None:
    done = _shell(project, f"{COMMAND} trace analyze trace.json --quiet --json /dev/stdout | grep -c traces")
    assert done.stdout.strip() == "1"
    write_text(Path("/dev/null"), "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_the_umask_and_the_mode_before_are_kept(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o600)
    write_text(tmp_path / "new", "again")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_a_session_s_page_is_for_its_owner(tmp_path: Path) -> None:
    write_text(tmp_path / "page", "x", private=True)
    assert stat.S_IMODE((tmp_path / "page").stat().st_mode) == 0o600


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "after"


def test_a_link_in_the_place_of_a_page_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "of_the_user").write_text("before")
    (tmp_path / "page.html").symlink_to("of_the_user")
    write_text(tmp_path / "page.html", "ours", private=True)
    assert (tmp_path / "of_the_user").read_text() == "before"
    assert not (tmp_path / "page.html").is_symlink()
    assert (tmp_path / "page.html").read_text() == "ours"


def test_a_link_that_leads_nowhere_makes_no_file_there(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(HotloopError, match="is a link that leads nowhere"):
        write_text(tmp_path / "link", "text")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("can't start new thread"), ExitCode.MACHINE),
        (BrokenProcessPool("ended"), ExitCode.MACHINE),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), ExitCode.MACHINE),
        (RuntimeError("a bug"), ExitCode.DEFECT),
        (TypeError("a bug"), ExitCode.DEFECT),
    ],
)
def test_a_machine_without_processes_is_a_line_and_a_bug_is_not(
    error: Exception, code: ExitCode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**_: object) -> None:
        raise error

    monkeypatch.setattr(app.hotloop, "main", fails)
    monkeypatch.setattr(app, "_drop_output", lambda: None)
    assert app.run(["machine"]) == code
    said = capsys.readouterr().err
    assert "hotloop:" in said
    assert ("Traceback" in said) == ("a defect of hotloop" in said) == (code == ExitCode.DEFECT)


def test_a_further_line_of_a_hint_starts_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    app._show("no such session", "known: a\n::error::b")
    assert not [line for line in capsys.readouterr().err.splitlines() if line.strip().startswith("::")]


def test_tune_refuses_before_it_starts_where_nothing_protects_the_files(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('ran', 'w')\n")
    line = f"{COMMAND} tune {sys.executable} train.py"
    done = _shell(tmp_path, line, **{NO_NAMESPACES: "1", NO_LANDLOCK: "1"})
    assert done.returncode == ExitCode.MACHINE
    assert "your files cannot be kept safe here" in done.stderr
    assert "--allow-writes" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize("command", ["observe", "tune --budget 1s"])
def test_what_is_not_protected_is_said_without_progress_too(command: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit(5)\n")
    done = _shell(tmp_path, f"{COMMAND} {command} --quiet {sys.executable} train.py", **{NO_NAMESPACES: "1"})
    assert "a guard inside Python redirects writes" in done.stderr


@pytest.mark.parametrize("error", [BrokenPipeError, OSError])
def test_a_progress_that_nobody_can_read_ends_nothing(
    error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise error

        flush = write  # type: ignore[assignment]

    screen = Screen()
    monkeypatch.setattr(screen.err, "file", Gone())
    screen.note("one")
    screen.note("two")
    screen.progress("three")
    screen.their_output("output of train.py")
    screen.done()
    monkeypatch.setattr(screen.err, "file", back := io.StringIO())
    screen.note("four")
    # Whoever has closed the pipe does not open it again; a disk has room again.
    assert back.getvalue().endswith("four\n") == (error is OSError)


@pytest.mark.parametrize(("columns", "width"), [("40", 40), ("120", 80), ("", 80), ("0", 80)])
def test_a_result_in_a_file_is_as_wide_as_columns_says_and_80_at_most(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    Screen().show(Text("word " * 100))
    assert max(map(len, capsys.readouterr().out.splitlines())) in range(width - 5, width + 1)


@pytest.mark.parametrize("columns", ["40", "", "0"])
def test_what_is_told_to_a_file_is_wrapped_where_columns_says_its_width(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    screen = Screen()
    screen.warn("hotloop: other processes use the CPU: ::error::ffmpeg (pid 7).")
    screen.progress("observing the steps of a program with a name")
    screen.detail(["step 3"])
    screen.progress("measuring its ceilings")
    told = capsys.readouterr().err
    if columns != "40":
        assert len(told.splitlines()) == 4
        return
    assert told == (
        "hotloop: other processes use the CPU:\n: :error::ffmpeg (pid 7).\n"
        "hotloop 0:00  observing the steps of a\nprogram with a name\n"
        "hotloop 0:00  measuring its ceilings\n  step 3\n"
    )


def test_a_pipe_that_is_closed_is_not_talked_about(tmp_path: Path) -> None:
    done = _shell(tmp_path, f"({COMMAND} explain; echo $? > code) | true")
    assert done.stderr == ""
    assert (tmp_path / "code").read_text() == "0\n"
