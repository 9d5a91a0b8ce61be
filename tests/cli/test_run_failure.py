"""What `hotloop run` says at the end of processes that ran out of memory."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli.run_failure import _is_first, main

TOLD: dict[str, Any] = {
    "error": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 GiB.", "asked_bytes": 6 << 30,
    "device": "cuda:0", "stack": [["/home/me/train.py", 30, "<module>"]], "phase": "forward", "by_class": {},
    "num": 1, "died": True, "went_on": False,
}  # fmt: skip
LONG_AGO = 1 << 22
"""More than the numbers of processes go to."""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def _tell(folder: Path, capsys: pytest.CaptureFixture[str], **changes: Any) -> str:
    (folder / "out-of-memory-7.json").write_text(json.dumps({**TOLD, **changes}))
    main(os.getpid(), ["python", "train.py"], str(folder))
    said = capsys.readouterr()
    return said.out + said.err


def test_the_first_rank_that_runs_out_tells_at_length_whichever_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert "hotloop report" in _tell(tmp_path, capsys)
    assert list(tmp_path.glob(".hotloop/*")), "kept as a session"
    monkeypatch.setenv("LOCAL_RANK", "0")
    again = _tell(tmp_path, capsys)
    assert again.startswith("hotloop: rank 0: Your program ran out of memory")
    assert len(again.splitlines()) == 1


def test_what_a_program_caught_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = _tell(tmp_path, capsys, died=False, went_on=True, num=3)
    assert said.startswith(
        "hotloop: your program ran out of memory at least 3 times, first at /home/me/train.py:30"
    )
    assert not list(tmp_path.glob(".hotloop/*"))


def test_marks_of_runs_that_are_over_go(tmp_path: Path) -> None:
    assert _is_first(LONG_AGO, tmp_path)
    assert _is_first(os.getpid(), tmp_path)
    assert not _is_first(os.getpid(), tmp_path)
    assert [path.name for path in tmp_path.glob("hotloop-told-*")] == [f"hotloop-told-{os.getpid()}"]
