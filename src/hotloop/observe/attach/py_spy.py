"""py-spy: stacks of a process that runs already, read from its memory by another process."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.model.errors import ExitCode, HotloopError

RATE = 50
"""Looks a second; at 100 py-spy fell behind on two busy cores."""
GRACE_S = 60.0
"""For reading the symbols of a large process before the first look."""


def sampled_stacks(pid: int, seconds: float) -> list[tuple[tuple[str, ...], int]]:
    """Return the stacks that a process and its children were seen in, outermost frame first, and how often each.

    The process is not stopped for a look, so a look may come in the middle of a call and fail; such a one is left out.

    Raises:
        HotloopError: py-spy is not installed, or the process cannot be read.
    """
    binary = _binary()
    scratch = new_scratch("attach")
    out = scratch / "stacks"
    words = [str(binary), "record", "--pid", str(pid), "--output", str(out), "--format", "raw"]
    words += ["--nonblocking", "--idle", "--threads", "--subprocesses", "--full-filenames"]
    words += ["--rate", str(RATE), "--duration", str(max(1, round(seconds)))]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=seconds + GRACE_S)
        if done.returncode or not out.is_file():
            raise _refused(pid, done.stderr)
        return [_stack(line) for line in out.read_text(errors="replace").splitlines() if line.strip()]
    except subprocess.TimeoutExpired as error:
        raise HotloopError(
            f"py-spy did not end {GRACE_S:.0f} s after its time", "try again", ExitCode.MACHINE
        ) from error
    finally:
        remove(scratch)


def _binary() -> Path:
    try:
        found = next(
            (file.locate() for file in files("py-spy") or () if file.name in {"py-spy", "py-spy.exe"}), None
        )
    except PackageNotFoundError:
        found = None
    if found is None:
        raise HotloopError(
            "looking at a process that runs already needs py-spy",
            f"{sys.executable} -m pip install 'hotloop[attach]'",
            ExitCode.MACHINE,
        )
    return Path(str(found))


def _refused(pid: int, said: str) -> HotloopError:
    """Return what py-spy's failure means."""
    if "permission denied" in said.lower() or "operation not permitted" in said.lower():
        return HotloopError(
            f"this user may not read the memory of process {pid} (ptrace)",
            "be its owner or root; in a container, add --cap-add SYS_PTRACE; "
            "or let the owner's processes be read: sysctl kernel.yama.ptrace_scope=0",
            ExitCode.MACHINE,
        )
    last = next(
        (line.strip() for line in said.splitlines() if line.startswith("Error: ")), said.strip()[-300:]
    )
    return HotloopError(
        f"process {pid} cannot be looked at: {last.removeprefix('Error: ')}",
        "it has to be a Python process that still runs",
        ExitCode.MACHINE,
    )


def _stack(line: str) -> tuple[tuple[str, ...], int]:
    stack, _, num = line.rpartition(" ")
    return tuple(stack.split(";")), int(num)
