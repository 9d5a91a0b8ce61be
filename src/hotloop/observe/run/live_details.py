"""What a run looks like at this moment, in two lines: its phases and rates, and the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hotloop.machine.monitor.columns import Metric
from hotloop.model.observation import Phase
from hotloop.model.quantities import byte_size, rate
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.run.stopping import StopRule
from hotloop.observe.steps.rates import rates
from hotloop.observe.steps.step_windows import Window

LATEST = 50
"""Steps that the shares are of: what goes on now, and not an hour ago."""
LEAST_SHARE = 0.005


def live_details(lead: Timeline, steady: Sequence[Window], sample: Mapping[Metric, float]) -> tuple[str, ...]:
    """Return the lines.

    Args:
        lead: the records of the leading process.
        steady: its steady steps.
        sample: the newest of the monitors.
    """
    latest = steady[-LATEST:]
    lines = (", ".join(_phases(lead, latest)), ", ".join(_machine(sample)))
    return tuple(line for line in lines if line)


def still_to_come(rule: StopRule, num_steps: int, measured_s: float) -> str:
    """Return what is still to be measured, in words; empty: until the program ends."""
    if rule.full:
        return ""
    if rule.steps is not None:
        return f"{max(0, rule.steps - num_steps):,} to go"
    left_s = max(0.0, rule.least_s - measured_s)
    return f"{left_s:.0f} s to go" if left_s >= 1 else ""


def _phases(lead: Timeline, latest: Sequence[Window]) -> Iterator[str]:
    timed = [window for window in latest if not window.lean]
    total = sum(window.duration_s for window in timed)
    shares = {
        phase.value: sum(window.phases[phase] for window in timed) / total if total else 0.0
        for phase in Phase
    }
    for name, share in sorted(shares.items(), key=lambda item: -item[1]):
        if share >= LEAST_SHARE:
            yield f"{share:.0%} {name}"
    samples, tokens = rates(lead, latest, ())
    if tokens or samples:
        yield f"{rate(tokens)} tokens/s" if tokens else f"{rate(samples or 0.0)} samples/s"


def _machine(sample: Mapping[Metric, float]) -> Iterator[str]:
    values = {str(metric): value for metric, value in sample.items()}
    busy, foreign = values.get("cpu_busy_ratio"), values.get("cpu_foreign_ratio")
    if busy is not None:
        others = f" ({foreign:.0%} by other processes)" if foreign else ""
        yield f"CPU {busy:.0%} busy{others}"
    for name, word in (("program_memory_bytes", "memory"), ("disk_read_bytes_per_s", "disk")):
        found = values.get(name)
        if found:
            yield f"{word} {byte_size(found)}" + ("/s read" if word == "disk" else "")
    for metric, value in sample.items():
        if metric.name == "gpu_utilization_ratio":
            labels = ",".join(label for _, label in metric.labels)
            used = sample.get(Metric("gpu_memory_used_bytes", metric.labels))
            yield f"GPU {labels} {value:.0%} busy" + (f", {byte_size(used)}" if used else "")
