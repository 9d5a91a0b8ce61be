"""What the host does that keeps the device waiting."""

from collections.abc import Iterator

import numpy as np

from hotloop.model.finding import Finding, Severity
from hotloop.model.quantities import counted, duration
from hotloop.trace.causes.idle import IdleCause
from hotloop.trace.causes.patterns.idle_pattern import NOTABLE, Seen


def input_bound(seen: Seen) -> Iterator[Finding]:
    """The device waits for the DataLoader."""
    waiting = seen.idle.ns[IdleCause.DATA] / 1000
    if seen.share(waiting) < NOTABLE:
        return
    single = _loading_ns(seen, "_SingleProcess") > _loading_ns(seen, "_MultiProcessing")
    where = (
        "in the training process itself (num_workers=0)"
        if single
        else "by workers that are too slow or too few"
    )
    yield Finding(
        code="input-bound",
        title=f"The device waits for data, loaded {where}",
        severity=Severity.WARNING,
        metric="idle_causes.data_us",
        cost_s=seen.per_step_s(waiting),
        evidence=f"idle {duration(waiting / 1e6)} inside the DataLoader, "
        f"{seen.share(waiting):.1%} of the device's span",
        advice="load in worker processes"
        if single
        else "find what limits the workers: decoding, storage or their number",
        optimization="loader_workers" if single else "loader_prefetch",
    )


def _loading_ns(seen: Seen, kind: str) -> int:
    """Time in loaders of one kind: a program may train with workers and evaluate without."""
    host = seen.linked.trace.host
    rows = host.name == seen.linked.trace.name_index(f"enumerate(DataLoader)#{kind}DataLoaderIter.__next__")
    return int(np.sum(host.end[rows] - host.start[rows]))


def sync_in_step(seen: Seen) -> Iterator[Finding]:
    """The host waits for the device in the middle of a step."""
    for site in seen.syncs:
        profiler = not site.implicit and site.num <= _BY_THE_PROFILER
        if profiler or seen.share(site.total_us) < NOTABLE:
            continue
        under = f" under {' -> '.join(site.under)}" if site.under else ""
        yield Finding(
            code="sync-in-step",
            title=f"{'Implicit' if site.implicit else 'Explicit'} synchronization, {counted(site.num, 'time')}",
            severity=Severity.WARNING if seen.share(site.idle_us) >= NOTABLE else Severity.INFO,
            path=site.path,
            line=site.line,
            metric=None if site.path else "syncs",
            cost_s=seen.per_step_s(site.idle_us),
            evidence=f"{site.call}{under}: {counted(site.num, 'call')}, "
            f"{duration(site.total_us / 1e6)} of host time waiting, {duration(site.idle_us / 1e6)} of device time idle",
            advice="keep the value on the device, or gather it every N steps",
        )


_BY_THE_PROFILER = 2
"""The profiler itself waits for the device when it starts and when it stops, outside of operators."""


def pageable_copies(seen: Seen) -> Iterator[Finding]:
    """Copies to the device from memory that is not pinned; those to the host are synchronizations."""
    rows = [row for row in seen.kernels if row.name.startswith("Memcpy HtoD") and "Pageable" in row.name]
    total = sum(row.total_us for row in rows)
    if not rows or seen.share(total) < NOTABLE / 2:
        return
    num = sum(row.num for row in rows)
    yield Finding(
        code="pageable-copy",
        title="Copies to the device from memory that is not pinned block the host",
        severity=Severity.WARNING,
        metric="device.exposed_memory_us",
        cost_s=seen.per_step_s(total),
        evidence=f"{counted(num, 'copy', 'copies')} ({', '.join(row.name for row in rows[:2])}), "
        f"{duration(total / 1e6)} on the device",
        advice="pin_memory=True in the DataLoader, and to(device, non_blocking=True)",
        optimization="pinned_memory",
    )


def launch_bound(seen: Seen) -> Iterator[Finding]:
    """Kernels so short that the host cannot launch them fast enough."""
    idle = seen.idle.ns[IdleCause.LAUNCH] / 1000
    rows = [row for row in seen.kernels if row.kind == "compute"]
    num = sum(row.num for row in rows)
    if not num or seen.share(idle) < 5 * NOTABLE:
        return
    mean = sum(row.total_us for row in rows) / num
    yield Finding(
        code="tiny-kernels" if mean < _LAUNCH_US else "launch-bound",
        title="The host cannot launch kernels as fast as the device finishes them",
        severity=Severity.WARNING,
        metric="idle_causes.launch_us",
        cost_s=seen.per_step_s(idle),
        evidence=f"idle {duration(idle / 1e6)} ({seen.share(idle):.1%}) while operators were dispatched; "
        f"{counted(num, 'kernel')} of {duration(mean / 1e6)} on average",
        advice="compile the model, capture the step as a graph, or use a larger batch",
        optimization="compile",
    )


_LAUNCH_US = 15.0
"""The median time between two launches of a thread is 16 to 54 us in seven published traces (qwen, owlv2, bert, ResNet,
DDP, DLRM): kernels shorter than the fastest of these cannot keep a device busy in eager mode."""
