"""Budgets: what a trace may cost at most, as an expression that CI can hold it to."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hotloop.model.errors import HotloopError
from hotloop.model.outcome import Outcome
from hotloop.trace.analysis import TraceAnalysis

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
    """Hold a trace to a budget; of one that the trace does not measure nothing can be said."""
    value = _measure(gate, analysis)
    if value is None:
        return Verdict(gate, analysis.file, Outcome.NOT_JUDGED, "not measured")
    kept = _COMPARE[gate.relation](value, gate.value)
    return Verdict(
        gate, analysis.file, Outcome.PASSED if kept else Outcome.FAILED, f"{value:,.2f}{gate.unit}"
    )


def _measure(gate: Gate, analysis: TraceAnalysis) -> float | None:
    if gate.metric == "findings":
        return float(len(analysis.findings))
    if gate.metric == "syncs":
        return float(sum(site.num for site in analysis.syncs))
    if gate.metric == "peak_memory":
        peaks = [use.peak_bytes for use in analysis.memory if use.device != "cpu"]
        return max(peaks) / _SIZE_BYTES.get(gate.unit, 1.0) if peaks else None
    device = analysis.device
    if device is None or not device.span_us:
        return None
    microseconds = _microseconds(gate.metric, analysis)
    if microseconds is None:
        return None
    return (
        100 * microseconds / device.span_us
        if gate.unit == "%"
        else microseconds / _TIME_US.get(gate.unit, 1.0)
    )


def _microseconds(metric: str, analysis: TraceAnalysis) -> float | None:
    if metric.startswith("idle_causes."):
        return analysis.idle_causes.get(metric.removeprefix("idle_causes.").removesuffix("_us") + "_us")
    value = getattr(analysis.device, f"{metric}_us")
    return float(value)
