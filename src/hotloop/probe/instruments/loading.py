"""Loading: what a sample's time goes to, in the training process; `worker_loading` looks at its workers."""

from __future__ import annotations

from typing import Any

from hotloop.probe.instruments.batch_parts import BatchParts
from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.probe import Probe


class Loading(Instrument):
    """Times the parts of the batches that this process makes, and what unpacking its workers' batches takes.

    Args:
        probe: the probe.
    """

    min_steps = 4
    max_steps = 2000
    """A data set in memory makes a batch in a fraction of a millisecond: it ends by its time."""
    seconds = 1.0

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._parts = BatchParts()
        if not probe.facts.loaders:
            self.min_steps, self.seconds = 1, 0.0  # nothing will come

    def start(self) -> None:
        """Begin to look."""
        self._parts.install()

    def stop(self) -> dict[str, Any]:
        """Stop looking."""
        self._parts.remove()
        return self._parts.value()

    def step_aside(self) -> None:
        """Be gone while torch.compile reads code; it does not come back: what is compiled is guarded on what it saw."""
        self._parts.remove()

    def after_fork(self) -> None:
        """Leave a forked child alone."""
        self._parts.remove()
