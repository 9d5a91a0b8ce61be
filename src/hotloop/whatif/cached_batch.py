"""The loop on one cached batch: what is left of the step when data comes at once."""

from __future__ import annotations

import copy
from typing import Any

from hotloop.optimize.catalogue.input.fetches import Fetches, key_of, loader_of
from hotloop.optimize.program.containers import tensors_in
from hotloop.probe.activation.knob import Knob


class CachedBatch(Knob):
    """Hands out the last batch of each training loader again and again while on."""

    settle_steps = 2

    def __init__(self) -> None:
        self._fetches = Fetches()
        self._versions: dict[int, list[int]] = {}
        self._num_handed = 0
        self._reason = "no DataLoader feeds the steps"

    def activation(self, params: dict[str, Any]) -> CachedBatch:  # noqa: ARG002 - what the probe calls
        """Return what acts."""
        return self

    def on_torch(self) -> None:
        """Stand between the loop and its loaders."""
        self._fetches = Fetches.of_process()

    def watch(self, steps: int) -> None:
        """See which loaders feed the steps."""
        self._fetches.watch(steps)

    def switch(self, on: bool) -> None:
        """Hand out cached batches, or the loaders' own."""
        self._fetches.instead = self._same if on else None
        self._versions.clear()

    def _same(self, iterator: Any) -> Any:
        key = key_of(loader_of(iterator))
        batch = self._fetches.last[key][1]
        versions = [tensor._version for tensor in tensors_in(batch) if not tensor.is_inference()]
        if self._versions.setdefault(key, versions) != versions:
            self._reason = "the program changes its batches in place, so one cannot be used twice"
        self._num_handed += 1
        # A program may take things out of a dictionary that it was given.
        return copy.copy(batch) if isinstance(batch, (dict, list)) or hasattr(batch, "pop") else batch

    def effect(self) -> tuple[bool, str]:
        """Return whether steps were fed from the cache."""
        changed = self._reason.startswith("the program")
        if changed or not self._num_handed:
            return False, self._reason
        return True, f"{self._num_handed} cached batches were handed out"
