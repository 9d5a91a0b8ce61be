"""Host samples: which lines of Python the time of this process goes to."""

from __future__ import annotations

from typing import Any

from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.instruments.sampler import Sampler
from hotloop.probe.probe import Probe


class HostSamples(Instrument):
    """Looks at the stacks of all threads.

    Args:
        probe: the probe.
    """

    seconds = 2.0
    max_steps = 5000
    """Steps cost it nothing: it ends by its time."""

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._thread = 0
        self._sampler: Sampler | None = None

    def start(self) -> None:
        """Begin to look."""
        self._thread = self.probe.recorder.thread
        self._sampler = Sampler(trainer=self._thread)
        self._sampler.start()

    def stop(self) -> dict[str, Any]:
        """Stop looking."""
        assert self._sampler is not None
        self._sampler.end()
        return {**self._sampler.value(), "thread": self._thread}
