"""Budgets: what a trace may cost at most, as an expression that CI can hold it to."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hotloop.model.errors import HotloopError
from hotloop.model.outcome import Outcome
from hotloop.trace.analysis import TraceAnalysis
from hotloop.trace.causes.device_work import DeviceTimeline
from hotloop.trace.facts.health import lacks_device_work

_EXPRESSION = re.compile(r"^\s*([a-z_.]+)\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*(%|us|ms|s|GiB|MiB|GB|MB)?\s*$")
_TIME_US = {"us": 1.0, "ms": 1e3, "s": 1e6}
_SIZE_BYTES = {"GB": 1e9, "MB": 1e6, "GiB": 2.0**30, "MiB": 2.0**20}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_PARTS = (
    "idle", "busy", "compute", "communication", "memory", "overlap", "exposed_communication", "exposed_memory",
)  # fmt: skip


@dataclass(frozen=True)
class Gate:
    """One budget."""

    text: str
    metric: str
    relation: str
    value: float
    unit: str


@dataclass(frozen=True)
class Verdict:
    """A budget held against one trace."""

    gate: Gate
    file: str
    outcome: Outcome
    shown: str
    """What the trace has."""


def parse_gate(text: str) -> Gate:
    """`idle<10%`, `idle_causes.data<5ms`, `findings<1`, `peak_memory<=20GB`.

    Raises:
        HotloopError: it is not such an expression.
    """
    found = _EXPRESSION.match(text)
    known = (*_PARTS, "findings", "syncs", "peak_memory")
    if not found or not (found[1] in known or found[1].startswith("idle_causes.")):
        raise HotloopError(
            f"{text!r} is not a budget",
            f"write METRIC<VALUE with one of {', '.join(known)}, idle_causes.CAUSE "
            "and a unit of %, us, ms, s, MB or GB",
        )
    return Gate(text.strip(), found[1], found[2], float(found[3]), found[4] or "")


def check_gate(gate: Gate, analysis: TraceAnalysis) -> Verdict:
    """Hold a trace and each of its devices to a budget; of one that the trace does not measure nothing can be said."""
    values = _measure(gate, analysis)
    if not values:
        return Verdict(gate, analysis.file, Outcome.NOT_JUDGED, "not measured")
    worst = max(values) if gate.relation.startswith("<") else min(values)
    kept = _COMPARE[gate.relation](worst, gate.value)
    return Verdict(
        gate, analysis.file, Outcome.PASSED if kept else Outcome.FAILED, f"{worst:,.2f}{gate.unit}"
    )


def _measure(gate: Gate, analysis: TraceAnalysis) -> list[float]:
    """One value, or one for each device; none: the trace does not tell."""
    if gate.metric == "findings":
        return [float(len(analysis.findings))]
    if gate.metric == "syncs":
        return [float(sum(site.num for site in analysis.syncs))]
    if gate.metric == "peak_memory":
        peaks = [use.peak_bytes for use in analysis.memory if use.device != "cpu"]
        return [peak / _SIZE_BYTES.get(gate.unit, 1.0) for peak in peaks]
    if lacks_device_work(analysis.health):
        return []
    found = [
        (_microseconds(gate.metric, one), one.time.span_us) for one in analysis.devices if one.time.span_us
    ]
    return [
        100 * value / span if gate.unit == "%" else value / _TIME_US.get(gate.unit, 1.0)
        for value, span in found
        if value is not None
    ]


def _microseconds(metric: str, device: DeviceTimeline) -> float | None:
    if metric.startswith("idle_causes."):
        return device.idle_causes.get(metric.removeprefix("idle_causes.").removesuffix("_us") + "_us")
    value = getattr(device.time, f"{metric}_us")
    return float(value)
