"""At the end of the interpreter: whether the program ends because memory ran out.

The exception that ends a program is kept by Python (`sys.last_value`) until its end, with the frames that it went
through and what they hold, so that nothing has to stand in its way before.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hotloop.probe.memory_failure.report_file import lines_of_traceback, write_failure
from hotloop.probe.memory_failure.reserve import Reserve
from hotloop.probe.memory_failure.words import STEM, says_out_of_memory
from hotloop.probe.probe import Probe


def install(probe: Probe) -> None:
    """Look when the interpreter ends: whatever that needs is imported, and put aside, now."""
    reserve = Reserve()
    atexit.register(lambda: _look(probe, reserve))


def _look(probe: Probe, reserve: Reserve) -> None:
    reserve.give_back()
    with probe.survive("memory failure"):
        last = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        error = says_out_of_memory(last)
        if error is None:
            return
        if probe.folder is not None:
            _write(probe.folder, error)
        elif probe.config.memory_reporter:
            _report(probe.config.memory_reporter, error)


def _write(folder: Path, error: BaseException) -> None:
    if not any(folder.glob(f"{STEM}-*.json")):
        write_failure(folder, error, lines_of_traceback(error), None)


def _report(command: Sequence[str], error: BaseException) -> None:
    """Let another process tell the user, on standard error."""
    with tempfile.TemporaryDirectory(prefix="hotloop-") as folder:
        _write(Path(folder), error)
        subprocess.run([*command, folder], stdin=subprocess.DEVNULL, stdout=2, check=False)
