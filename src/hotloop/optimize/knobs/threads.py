"""The number of threads as a knob."""

from __future__ import annotations

from hotloop.probe.activation.knob import Knob


class ThreadKnob(Knob):
    """Computes with another number of threads while on.

    Args:
        num_threads: of one operation, in the training process.
    """

    settle_steps = 2

    def __init__(self, num_threads: int) -> None:
        self._num_threads = num_threads
        self._before: int | None = None
        self._seen = 0

    def switch(self, on: bool) -> None:
        """Set the number, or the one before."""
        import torch

        if on:
            self._before = torch.get_num_threads()
            torch.set_num_threads(self._num_threads)
        elif self._before is not None:
            self._seen = torch.get_num_threads()
            torch.set_num_threads(self._before)
            self._before = None

    def effect(self) -> tuple[bool, str]:
        """Return whether torch computes, or computed, with that many."""
        import torch

        seen = self._seen if self._before is None else torch.get_num_threads()
        return seen == self._num_threads, f"torch.get_num_threads() is {seen}"
