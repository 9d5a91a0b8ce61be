"""The memory that kept samples may take, decided before the first of them is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotloop.optimize.dataset.memory import allowed_bytes
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.samples import num_bytes


class Budget:
    """A share of the memory that is free when it is made.

    Args:
        max_share: of the free memory.
    """

    def __init__(self, max_share: float) -> None:
        self._max_share = max_share
        self._allowed = allowed_bytes(max_share)
        self._taken = 0

    def expect(self, num: int, length: int) -> None:
        """Look ahead.

        Raises:
            CannotKeep: so many bytes, for so many samples, are more than is allowed.
        """
        if self._allowed is not None and num > self._allowed:
            raise CannotKeep(
                f"{length} samples take about {num / 2**30:.2g} GiB, and {self._allowed / 2**30:.2g} GiB are allowed "
                f"({self._max_share:.0%} of the free memory)"
            )

    def take(self, samples: Sequence[Any]) -> None:
        """Count samples that are kept; those that were weighed ahead may have been light ones.

        Raises:
            CannotKeep: with them it is more than is allowed.
        """
        if self._allowed is None:
            return
        self._taken += sum(map(num_bytes, samples))
        if self._taken > self._allowed:
            raise CannotKeep(
                f"its samples take more than {self._allowed / 2**30:.2g} GiB, which is what is allowed "
                f"({self._max_share:.0%} of the free memory)"
            )
