"""What ends hotloop from outside ends the user's program with it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_ENDING = ("SIGTERM", "SIGHUP")


@contextlib.contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Treat a request to terminate, or a terminal that is closed, as Ctrl-C: the run is ended, not left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the handler's signature
    raise KeyboardInterrupt
