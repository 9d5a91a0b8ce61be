"""One device of a trace: when it was busy, what it waited for, and the same step by step."""

from dataclasses import dataclass

import msgspec

from hotloop.trace.causes.idle import IdleCause, IdleCauses, IdleSplit
from hotloop.trace.facts.intervals import Intervals, clip, subtract
from hotloop.trace.facts.steps import Step
from hotloop.trace.facts.timeline import DeviceSweep, DeviceTime
from hotloop.trace.link.linked_trace import LinkedTrace


class DeviceTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """The timeline of one device, and what it waited for."""

    device: int
    time: DeviceTime
    idle_causes: dict[str, float]
    """`<cause>_us`; they add up to `time.idle_us`."""


class StepTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """One step by the profiler's marks; the device's work is cut at the step's ends on the host."""

    number: int
    span_us: float
    busy_us: float | None
    """None, as is `idle_us`: there are no device events."""
    idle_us: float | None
    data_us: float
    """Host time inside the DataLoader."""
    idle_causes: dict[str, float]


@dataclass(frozen=True)
class DeviceWork:
    """What one device did, and why it did nothing in between."""

    device: int
    linked: LinkedTrace
    """With the events of this device only."""
    sweep: DeviceSweep
    causes: IdleCauses
    idle: IdleSplit
    idle_when: dict[IdleCause, Intervals]

    @property
    def timeline(self) -> DeviceTimeline | None:
        """The whole of it; None: the device has no events."""
        if not self.sweep.num:
            return None
        return DeviceTimeline(device=self.device, time=self.sweep.times(), idle_causes=_named(self.idle))

    def steps(self, steps: tuple[Step, ...]) -> tuple[StepTimeline, ...]:
        """The same between the ends of each step."""
        return tuple(self._step(step) for step in steps)

    def data_share(self, steps: tuple[Step, ...]) -> float | None:
        """DataLoader time that no work hides, over all steps and the work they left behind; None: there is neither."""
        if not steps or not len(self.causes.data):
            return None
        low, high = steps[0].start_ns, steps[-1].end_ns
        high = max(high, self.sweep.high) if self.sweep.num else high
        data = subtract(clip(self.causes.data, low, high), self.sweep.busy)
        return data.total / (high - low) if high > low else None

    def _step(self, step: Step) -> StepTimeline:
        busy = clip(self.sweep.busy, step.start_ns, step.end_ns)
        idle, _ = self.causes.split(busy, step.start_ns, step.end_ns)
        span = step.end_ns - step.start_ns
        used = bool(self.sweep.num)
        return StepTimeline(
            number=step.number,
            span_us=span / 1000,
            busy_us=busy.total / 1000 if used else None,
            idle_us=(span - busy.total) / 1000 if used else None,
            data_us=clip(self.causes.data, step.start_ns, step.end_ns).total / 1000,
            idle_causes=_named(idle) if used else {},
        )


def device_work(linked: LinkedTrace, device: int) -> DeviceWork:
    """The work of one device out of the trace of all."""
    own = linked.on_device(device)
    sweep = DeviceSweep(own.trace.device)
    causes = IdleCauses(linked, device)
    idle, when = causes.split(sweep.busy, sweep.low, sweep.high)
    return DeviceWork(device, own, sweep, causes, idle, when)


def _named(idle: IdleSplit) -> dict[str, float]:
    return {f"{cause.value}_us": ns / 1000 for cause, ns in idle.ns.items()}
