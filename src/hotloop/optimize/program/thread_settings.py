"""What sets the number of intra-operation threads, for the optimizations that need it."""

from __future__ import annotations

import sys

from hotloop.probe.activation.activation import Activation

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Threads(Activation):
    """Sets the number of threads that torch computes with, and keeps it.

    Args:
        num_threads: of one operation, in the training process.
    """

    def __init__(self, num_threads: int) -> None:
        self._num_threads = num_threads
        self._num_kept = 0
        """Calls of the program that would have changed the count."""

    def on_torch(self) -> None:
        """Set the count and keep it from being changed."""
        import torch

        original = torch.set_num_threads

        def set_num_threads(num: int) -> None:
            # torch's own loader workers ask for one thread each, and get it.
            if sys._getframe(1).f_globals.get("__name__", "").startswith("torch.utils.data"):
                original(num)
                return
            self._num_kept += num != self._num_threads
            original(self._num_threads)

        original(self._num_threads)
        torch.set_num_threads = set_num_threads

    def effect(self) -> tuple[bool, str]:
        """Return whether torch computes with that many threads."""
        import torch

        seen = torch.get_num_threads()
        kept = f"; kept against {self._num_kept} calls of the program" if self._num_kept else ""
        return seen == self._num_threads, f"torch.get_num_threads() is {seen}{kept}"
