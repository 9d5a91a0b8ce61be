"""What is shown may be lost: a closed, full or narrow terminal costs neither the result nor a traceback."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.cli.files import write_text

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
