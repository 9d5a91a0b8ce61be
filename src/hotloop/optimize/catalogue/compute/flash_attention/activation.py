"""The activation of flash_attention: functions that write attention out get other code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotloop.optimize.catalogue.compute.flash_attention.function_swap import Written, written_by
from hotloop.optimize.comparison.compared_swap import ComparedSwap


class AttentionSwap(ComparedSwap):
    """Exchanges the code of functions that write attention out."""

    nothing = "no training forward ran attention that is written out"

    def __init__(self, *, at_once: bool) -> None:
        super().__init__(at_once=at_once)
        self._written: list[Written] = []

    def found(self, root: Any) -> tuple[Sequence[Written], Sequence[str]]:
        """Return the functions, and why others are left."""
        written, left = written_by(root)
        self._written += written
        return written, left

    def kernels(self) -> str:
        """Return which kernels torch chose."""
        return "".join(
            f", kernel {each}" for each in sorted({one.kernel for one in self._written if one.kernel})
        )
