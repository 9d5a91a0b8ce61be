"""Why a program ended."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from hotloop.launch.log_tail import _OF_LAUNCHER, last_words, without_report
from hotloop.launch.process import Run

BAR = "Epoch [1/14]: [15/16]  94%|█████  , loss=0.31 [00:00<00:00]\r" + " " * 80


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", ""),
        ("\n  \n", ""),
        ("step 1\nstep 2\n", "step 2"),
        ("RuntimeError: view size\n" + BAR + "\n", "RuntimeError: view size"),
        (
            "  raise x\ntorch.cuda.OutOfMemoryError: no memory\n[rank 0] exits\n",
            "torch.cuda.OutOfMemoryError: no memory",
        ),
        ("AssertionError\n", "AssertionError"),
        (
            "[rank1]: Traceback (most recent call last):\n[rank1]: ValueError: odd\nTraceback:\n"
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\n",
            "ValueError: odd",
        ),
        ("ValueError: one\n\nDuring handling\n\nKeyError:   'two'\n", "KeyError: 'two'"),
        ("Errors so far: 3\n", "Errors so far: 3"),
    ],
)
def test_the_exception_counts_not_what_was_printed_after_it(output: str, said: str) -> None:
    assert last_words(output) == said


def test_what_a_rank_said_counts_not_the_launchers_report_on_it(tmp_path: Path) -> None:
    """The last words of every torchrun job were a line of equals signs."""
    log = tmp_path / "log"
    rank = [
        "[rank1]: Traceback (most recent call last):",
        "[rank1]: RuntimeError: shape of the labels is wrong",
    ]
    raised = ["Traceback (most recent call last):", *["  frame"] * 20, f"{_OF_LAUNCHER}: "]
    report = ["=" * 60, "train.py FAILED", "Failures:", *["  rank : 0"] * 20, "=" * 60]
    log.write_text("\n".join([*rank, *raised, *report]))
    run = SimpleNamespace(log=log)
    assert Run.log_end(run).splitlines() == rank  # type: ignore[arg-type]
    assert last_words(Run.log_end(run)) == "RuntimeError: shape of the labels is wrong"  # type: ignore[arg-type]
    assert "FAILED" in Run.log_end(run, 200, report=True)  # type: ignore[arg-type]
    assert without_report(["step 1", "step 2"]) == ["step 1", "step 2"]
