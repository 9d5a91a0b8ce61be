"""Keeps a sketch of the gradients that each of the first optimizer steps uses.

Two runs that begin with the same weights have the same gradients, but for rounding, for as long as they are given the
same batches; a mask, a label or a scale that is wrong shows in the first of them, long before a loss does. Sketches
are sums with fixed random signs: their cosine is that of the gradients, within an eighth (see `outputs`).
"""

from __future__ import annotations

import base64
import zlib
from array import array
from collections.abc import Iterable
from typing import Any

from hotloop.probe.record.outputs import some_values

NUM_SUMS = 64
MAX_VALUES = 512
"""Of a parameter; of a larger one every n-th value is taken, and counts for as many."""


class GradientSketches:
    """The sketches of this process."""

    def __init__(self) -> None:
        self._heads: list[dict[str, int]] = []
        self._sums: list[Any] = []
        self._signs: dict[tuple[int, str], Any] = {}

    def keep(self, parameters: Iterable[Any], num_forwards: int, generators: list[Any]) -> None:
        """Keep the sketch of the gradients that a step is about to use.

        Args:
            parameters: with gradients; one that is missing, or sparse, counts as zeros.
            num_forwards: training calls of root modules so far.
            generators: the states of the random generators.
        """
        import torch

        parts = []
        for parameter in parameters:
            gradient = parameter.grad
            known = gradient is not None and not gradient.is_sparse
            values = some_values(gradient if known else parameter, MAX_VALUES)
            values = values if known else torch.zeros_like(values)
            parts.append(values * (parameter.numel() / max(1, len(values))) ** 0.5)
        if not parts:
            return
        home = parts[0].device
        whole = torch.cat([part.to(home) for part in parts])
        self._heads.append(
            {
                "num_forwards": num_forwards,
                "generators": zlib.crc32(b"".join(bytes(state.tolist()) for state in generators)),
                "num_values": len(whole),
            }
        )
        self._sums.append(self._sketch(whole))

    def _sketch(self, values: Any) -> Any:
        import torch

        num = -(-len(values) // NUM_SUMS) * NUM_SUMS
        key = (num, str(values.device))
        if key not in self._signs:
            signs = torch.randint(0, 2, (num,), generator=torch.Generator().manual_seed(num))
            self._signs[key] = (2 * signs - 1).to(values)
        padded = torch.nn.functional.pad(values, (0, num - len(values)))
        return (padded * self._signs[key]).view(-1, NUM_SUMS).sum(0)

    def rows(self) -> list[dict[str, Any]]:
        """Return what `hotloop.model.learned.GradientSketch` holds, of each step."""
        if not self._sums:
            return []
        import torch

        home = self._sums[0].device
        sums = torch.stack([each.to(home) for each in self._sums]).float().tolist()
        return [
            {**head, "sums": base64.b64encode(array("f", row).tobytes()).decode()}
            for head, row in zip(self._heads, sums, strict=True)
        ]
