"""What an instrument is: it is started and stopped at step boundaries and returns what it saw."""

from __future__ import annotations

from typing import Any

from hotloop.probe.probe import Probe


class Instrument:
    """One way of looking, for a few steps.

    Attributes:
        min_steps: a window has at least so many steps, unless they are slow.
        max_steps: and at most so many.
        seconds: it ends at the first boundary after so long, once it has its least steps.
        profiles: it runs torch's profiler.

    Args:
        probe: the probe of this process.
    """

    min_steps: int = 3
    max_steps: int = 200
    seconds: float = 1.5
    profiles: bool = False

    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def start(self) -> None:
        """Begin to look.

        Raises:
            Unavailable: it cannot be used in this process, with the reason.
        """

    def step(self) -> None:
        """Called when a step has ended within the window, before `stop` where it is the last one."""

    def stop(self) -> Any:
        """Stop looking; return what was seen, as builtin values (JSON)."""

    def step_aside(self) -> None:
        """Called when torch.compile begins to read code: nothing of the instrument may be found."""

    def step_back(self) -> None:
        """Called when torch.compile has ended."""

    def after_fork(self) -> None:
        """Called in a child that was forked within the window: it is not looked at."""


class Unavailable(Exception):  # noqa: N818 - an answer, not an error
    """Raised by an instrument that cannot be used here, with the reason in one sentence."""
