"""What was piped into `hotloop tune` is given to every run of the program."""

from __future__ import annotations

import select
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotloop.launch.isolation.scratch import new_scratch, remove


@contextmanager
def copied_input() -> Iterator[Path | None]:
    """Yield a file with standard input, for as long as it is needed; None where it is a terminal, or empty."""
    if (
        sys.stdin is None
        or sys.stdin.closed
        or sys.stdin.isatty()
        or not select.select([sys.stdin], [], [], 0)[0]
    ):
        yield None
    else:
        folder = new_scratch("stdin")
        try:
            copy = folder / "stdin"
            with copy.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            yield copy
        finally:
            remove(folder)
