"""Instruments for the tests of the windows."""

from __future__ import annotations

from typing import Any

from hotloop.probe.instruments.instrument import Instrument, Unavailable


class Counting(Instrument):
    """Counts steps; ends after four of them."""

    min_steps, max_steps, seconds = 1, 4, 1000.0
    num = 0

    def step(self) -> None:
        """Count."""
        self.num += 1

    def stop(self) -> Any:
        """Return the count."""
        return {"num": self.num}


class Profiling(Counting):
    """As one that runs torch's profiler."""

    profiles = True


class Refusing(Instrument):
    """Cannot be used."""

    def start(self) -> None:
        """Refuse."""
        raise Unavailable("the program profiles itself")


class Breaking(Counting):
    """Fails at the end."""

    def stop(self) -> Any:
        """Fail."""
        raise ValueError("broken")


class Unwritable(Counting):
    """Gives what JSON has no form for."""

    def stop(self) -> Any:
        """Return an object."""
        return {"thing": object()}
