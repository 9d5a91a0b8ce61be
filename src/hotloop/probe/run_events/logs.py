"""Not a phase of the step: what the program writes to its standard streams and through `logging`.

`print` itself stays as it is, since torch.compile and programs know it: the streams' own methods are timed, on these
two objects alone, so that a value's formatting is not in it. What it costs: two events a line.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import sys
from typing import Any

from hotloop.probe.frameless import Timed
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.sections import Section, around, section

_METHODS = ("write", "flush")


def install(probe: Probe) -> None:
    """Patch the methods of the streams, and the one that every log handler inherits."""
    marks = section(probe, Kind.LOG, aside=True)
    for stream in {id(stream): stream for stream in (sys.stdout, sys.stderr) if stream is not None}.values():
        _watch(stream, marks)
    logging.Handler.handle = Timed(logging.Handler.handle, marks)  # type: ignore[method-assign]


def _watch(stream: Any, marks: Section) -> None:
    """Time a stream's methods until the interpreter shuts down; one that takes no attributes is left alone."""
    if not hasattr(stream, "__dict__"):
        return
    for name in _METHODS:
        original = getattr(stream, name)
        setattr(stream, name, functools.wraps(original)(around(marks, original)))

    def leave() -> None:
        for name in _METHODS:
            with contextlib.suppress(AttributeError):
                delattr(stream, name)

    atexit.register(leave)
