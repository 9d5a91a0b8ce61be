"""What a pattern looks at."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hotloop.model.finding import Finding
from hotloop.trace.causes.idle import IdleSplit
from hotloop.trace.causes.synchronizations import SyncSite
from hotloop.trace.facts.kernels import KernelRow
from hotloop.trace.facts.operators import OperatorRow
from hotloop.trace.facts.steps import Step
from hotloop.trace.facts.timeline import DeviceTime
from hotloop.trace.link.linked_trace import LinkedTrace


@dataclass(frozen=True)
class Seen:
    """Everything that was worked out of one trace."""

    linked: LinkedTrace
    steps: tuple[Step, ...]
    device: DeviceTime
    idle: IdleSplit
    syncs: tuple[SyncSite, ...]
    kernels: tuple[KernelRow, ...]
    operators: tuple[OperatorRow, ...]
    knows_idle: bool = True
    """False: the device did more than the trace shows, and nothing is said of its idle time."""

    def per_step_s(self, microseconds: float) -> float | None:
        """A cost per step in seconds; None: the trace has no steps."""
        return microseconds / 1e6 / len(self.steps) if self.steps else None

    def share(self, microseconds: float) -> float:
        """Of the device's span."""
        return microseconds / self.device.span_us if self.device.span_us else 0.0


Pattern = Callable[[Seen], Iterator[Finding]]

NOTABLE = 0.02
"""Below 2% of the span nothing is said: tools of this kind differ by that much between two runs of one program."""
