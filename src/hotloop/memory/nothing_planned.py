"""Why a virtual run gave nothing."""

from __future__ import annotations

import re
from pathlib import Path

from hotloop.launch.log_tail import last_words
from hotloop.model.errors import ExitCode, HotloopError

_FRAME = re.compile(r'^(?:\[rank\d+\]:)?\s*File "(?P<path>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
_LIBRARIES = ("site-packages", "/hotloop/probe/", "/lib/python", "<frozen", "<string>")
_NO_KERNEL = re.compile(r"Could not run '(?P<operator>[^']+)' with arguments from the 'CUDA'")
_MOST = 300
"""Characters of an exception's text."""


def nothing_planned(folder: Path, code: int | None, log_end: str, limit_s: float) -> HotloopError:
    """Return why nothing was planned.

    Args:
        folder: of the run's reports.
        code: that the program ended with; None: it was ended.
        log_end: of its output.
        limit_s: that it had.
    """
    for path in folder.glob("virtual-failed-*"):
        return HotloopError(
            f"the memory of a device that is not here cannot be planned: {path.read_text()}",
            "plan it where the program's environment has torch for CUDA, or a C++ compiler",
            ExitCode.MACHINE,
        )
    if code is None:
        return HotloopError(
            f"the program took no training step on the virtual GPU within {limit_s:.0f} s",
            "give it more time: --seconds",
            ExitCode.PROGRAM_FAILED,
        )
    said = how_it_failed(log_end, code)
    return failed_early(0, f" with exit code {code}" + (said if said != f": exit code {code}" else ""))


def failed_early(num_steps: int, how: str) -> HotloopError:
    """Return the error of a program that failed before its third step.

    Args:
        num_steps: that it took.
        how: it ended.
    """
    return HotloopError(
        f"the program ended on the virtual GPU after {num_steps} training steps{how}",
        "run it as you do, to see that it trains. Tensors on a virtual GPU have shapes and no values: what that line "
        "asks of a value, or of a library that reads memory itself, has no answer; leave it out for the plan",
        ExitCode.PROGRAM_FAILED,
    )


def how_it_failed(log_end: str, code: int | None) -> str:
    """Return how a program failed: the user's line where the exception passed, and the exception."""
    missing = _NO_KERNEL.search(log_end)
    words = last_words(log_end)
    if missing is not None:
        words = f"{missing['operator']} needs the device itself"
    if not words:
        return f": exit code {code}"
    places = [found for found in _FRAME.finditer(log_end) if not _is_installed(found["path"])]
    where = f" in {Path(places[-1]['path']).name}:{places[-1]['line']}" if places else ""
    return f"{where}: {words[:_MOST]}"


def _is_installed(path: str) -> bool:
    """Whether a file is a library's, or a command that it installs (`bin/torchrun`), and not the user's own."""
    is_command = Path(path).parent.name == "bin" and not Path(path).suffix
    return is_command or any(part in path for part in _LIBRARIES)
