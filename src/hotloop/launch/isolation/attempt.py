"""Try an isolation out: enter it once, and write in it where the program will write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from hotloop.launch.isolation import enter, trial_write
from hotloop.launch.isolation.places import Places
from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.launch.isolation.values import Isolation
from hotloop.launch.isolation.wrap import wrap

NO_NAMESPACES = "HOTLOOP_NO_NAMESPACES"
"""Set to anything, this takes namespaces as not permitted: a way to test the guard that stands in for them."""


class Attempt(NamedTuple):
    """What came of it.

    Attributes:
        error: why the isolation cannot be used; None: it can.
        read_only: folders that could not be covered and are read-only in it, with the reason.
        unwritable: whether it could be entered, and writes failed in it.
    """

    error: str | None
    read_only: tuple[tuple[str, str], ...] = ()
    unwritable: bool = False


def attempt(isolation: Isolation, scratch_root: Path, places: Places | None = None) -> Attempt:
    """Enter an isolation once.

    Args:
        isolation: which.
        scratch_root: where its scratch folder is made.
        places: where to try a write; what lies in a folder that is read-only in it is not counted as failed;
            None: nowhere.
    """
    if isolation.covered and os.environ.get(NO_NAMESPACES):
        return Attempt(f"{NO_NAMESPACES} is set")
    if sys.platform != "linux":
        return Attempt("namespaces are a matter of Linux")
    scratch = new_scratch("try", root=scratch_root)
    try:
        result = scratch / "written"
        words = [sys.executable, "-I", "-S", trial_write.__file__, str(result)]
        done = subprocess.run(
            wrap(words, isolation, scratch, Path("/")),
            env={},
            capture_output=True,
            text=True,
            check=False,
            input=json.dumps((places or Places((), ()))._asdict()),
        )
        if done.returncode or not result.exists():
            reason = scratch / "isolation-error"
            why = reason.read_text() if reason.exists() else done.stderr.strip()[-200:]
            return Attempt(why or f"exit {done.returncode}")
        listed = scratch / enter.READ_ONLY
        read_only = tuple(map(tuple, json.loads(listed.read_text()))) if listed.exists() else ()
        return _judged(json.loads(result.read_text()), read_only)
    finally:
        remove(scratch)


def _judged(failed: list[list[str]], read_only: tuple[tuple[str, str], ...]) -> Attempt:
    for place, reason in failed:
        if not any(Path(place).is_relative_to(folder) for folder, _ in read_only):
            return Attempt(f"a write to {place} fails in it: {reason}", read_only, unwritable=True)
    return Attempt(None, read_only)
