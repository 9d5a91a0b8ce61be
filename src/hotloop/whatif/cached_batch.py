"""The loop on one cached batch: what is left of the step when data comes at once."""

from __future__ import annotations

import copy
from typing import Any

from hotloop.optimize.loaders.fetches import Fetches, key_of, loader_of
from hotloop.optimize.program.containers import tensors_in
from hotloop.probe.activation.knob import Knob

ALIKE = 0.05
"""A batch that has so much more or fewer elements than the mean stands for none of the others."""


class CachedBatch(Knob):
    """Hands out one batch of each training loader again and again while on: the one that is most like the others.

    The step is then as long as the cached batch makes it. Where batches differ in size (texts, graphs), the last one
    may be half or twice the mean, and its gain no ceiling of anything.
    """

    settle_steps = 2

    def __init__(self) -> None:
        self._fetches = Fetches()
        self._usual: dict[int, _Usual] = {}
        self._versions: dict[int, list[int]] = {}
        self._num_handed = 0
        self._reason = "no DataLoader feeds the steps"
        self._spoiled = False

    def activation(self, params: dict[str, Any]) -> CachedBatch:  # noqa: ARG002 - what the probe calls
        """Return what acts."""
        return self

    def on_torch(self) -> None:
        """Insert the knob between the loop and its loaders."""
        self._fetches = Fetches.of_process()

    def watch(self, steps: int) -> None:
        """See which loaders feed the steps, and with batches of what size."""
        self._fetches.watch(steps)
        for key, (_, batch) in self._fetches.last.items():
            self._usual.setdefault(key, _Usual()).look(batch)

    def switch(self, on: bool) -> None:
        """Hand out cached batches, or the loaders' own."""
        self._fetches.instead = self._same if on else None
        self._versions.clear()

    def _same(self, iterator: Any) -> Any:
        key = key_of(loader_of(iterator))
        usual = self._usual[key]
        if reason := usual.reason:
            self._spoil(reason)
        versions = [tensor._version for tensor in tensors_in(usual.batch) if not tensor.is_inference()]
        if self._versions.setdefault(key, versions) != versions:
            self._spoil("the program changes its batches in place, so one cannot be used twice")
        self._num_handed += 1
        batch = usual.batch
        # A program may take things out of a dictionary that it was given.
        return copy.copy(batch) if isinstance(batch, (dict, list)) or hasattr(batch, "pop") else batch

    def _spoil(self, reason: str) -> None:
        self._spoiled, self._reason = True, reason

    def effect(self) -> tuple[bool, str]:
        """Return whether steps were fed from the cache, with a batch that is like the others."""
        if self._spoiled or not self._num_handed:
            return False, self._reason
        return True, f"{self._num_handed} cached batches were handed out"


class _Usual:
    """Of a loader's batches the one whose size is nearest to their mean; of several the latest."""

    def __init__(self) -> None:
        self.batch: Any = None
        self._size = 0
        self._total = 0
        self._num = 0

    @property
    def mean(self) -> float:
        return self._total / self._num

    def look(self, batch: Any) -> None:
        if batch is self.batch:
            return
        size = sum(tensor.numel() for tensor in tensors_in(batch))
        self._total, self._num = self._total + size, self._num + 1
        if self.batch is None or abs(size - self.mean) <= abs(self._size - self.mean):
            self.batch, self._size = batch, size

    @property
    def reason(self) -> str:
        """Why it stands for none of the others; empty: it does."""
        if not self._size:
            return "its batches hold no tensors, so whether one is like the others is not known"
        if abs(self._size / self.mean - 1) > ALIKE:
            return f"its batches differ in size: the nearest to their mean of {self.mean:.0f} elements has {self._size}"
        return ""
