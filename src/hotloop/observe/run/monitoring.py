"""Watch the machine beside the program, and sum up what was seen over its steady steps."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from hotloop.machine.monitor.columns import Columns, Metric
from hotloop.machine.monitor.program_sources import ROLE_FIELDS, TREE_MEMORY, process_memory, role_metric
from hotloop.model.monitors import Monitor, Monitors
from hotloop.model.observation import Coverage, Memory, Observation
from hotloop.model.tree_memory import PROGRAM, WORKERS, RoleMemory, TreeMemory
from hotloop.observe.build import leading
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.steps.ranks import steady_windows

INTERVAL_S = 0.5
MAX_SAMPLES = 7200
"""An hour; of longer runs evenly spaced samples are kept, since all are stored with every session."""


def with_monitors(
    observation: Observation,
    columns: Columns,
    errors: Mapping[str, str],
    known: dict[int, Timeline],
    begin_s: float,
    lead_pid: int | None,
) -> Observation:
    """Return the observation with what the machine did, and with what could not be watched.

    Args:
        observation: the light measurement.
        columns: what the monitors saw.
        errors: what they could not, by source.
        known: the records; the steady steps of the leading process are what means are taken over.
        begin_s: when the command was started.
        lead_pid: of the leading process, as the monitors know it; None: not seen.
    """
    gaps = [Coverage(f"monitor {source}", why) for source, why in errors.items()]
    steady = _steady(observation, known)
    monitors = None if steady is None else _of_program(summarize(columns, *steady, begin_s), lead_pid)
    if steady is not None and monitors is None:
        gaps.append(Coverage("monitors", "no sample was taken during the steady steps"))
    memory = observation.memory
    if steady is not None:
        memory = with_tree(memory, columns, *steady)
    return msgspec.structs.replace(
        observation, memory=memory, monitors=monitors, coverage=(*observation.coverage, *gaps)
    )


def largest_process(columns: Columns) -> int | None:
    """Return the most that one process of the program was seen to hold; None: none was large enough to be told."""
    held = [columns.column(metric) for metric in columns.metrics if metric.name == "process_memory_bytes"]
    most = [float(np.nanmax(column)) for column in held if column is not None and len(column)]
    return round(max(most)) if most else None


def with_tree(memory: Memory, columns: Columns, from_s: float, until_s: float) -> Memory:
    """Return it with what all processes held together, up to where profilers begin to hold something of their own.

    Without a sample in the steady steps nothing is said: at the start the loader's workers are not there yet.
    """
    counted = [
        metric
        for metric in columns.metrics
        if metric.name == TREE_MEMORY and columns.spread(metric, from_s, until_s)
    ]
    found = [(spread.high, metric) for metric in counted if (spread := columns.spread(metric, end_s=until_s))]
    if not found:
        return memory
    most, metric = max(found)
    processes = columns.spread(Metric("tree_num_processes"), end_s=until_s)
    tree = TreeMemory(
        peak_bytes=round(most),
        method=dict(metric.labels)["counted"],
        num_processes=round(processes.high) if processes else 1,
        roles=_roles(columns, metric, until_s),
    )
    return msgspec.structs.replace(memory, tree=tree)


def _roles(columns: Columns, of: Metric, until_s: float) -> dict[str, RoleMemory]:
    """Return what the processes of each role held in the sample in which all held most."""
    whole = columns.column(of)
    if whole is None or not (within := columns.times_s <= until_s).any():
        return {}
    at = int(np.nanargmax(np.where(within, whole, np.nan)))
    roles = {}
    for role in (PROGRAM, WORKERS):
        found = [columns.column(role_metric(role, field)) for field in ROLE_FIELDS]
        values = [float(column[at]) for column in found if column is not None]
        if len(values) == len(ROLE_FIELDS) and not np.isnan(values).any():
            roles[role] = RoleMemory(**dict(zip(ROLE_FIELDS, map(round, values), strict=True)))
    return roles


def _of_program(monitors: Monitors | None, lead_pid: int | None) -> Monitors | None:
    """Keep, of the memory of each process, that of the leading one."""
    if monitors is None or lead_pid is None:
        return monitors
    own = monitors.metrics.get(str(process_memory(lead_pid)))
    prefix = process_memory(0).name
    metrics = {name: monitor for name, monitor in monitors.metrics.items() if not name.startswith(prefix)}
    return msgspec.structs.replace(
        monitors, metrics=metrics if own is None else {**metrics, "program_memory_bytes": own}
    )


def _steady(observation: Observation, known: dict[int, Timeline]) -> tuple[float, float] | None:
    lead = leading(known)
    if lead is None or observation.anchor is None:
        return None
    steps = steady_windows(lead, observation.anchor)
    return (steps[0].begin_s, steps[-1].end_s) if steps else None


def summarize(columns: Columns, from_s: float, to_s: float, begin_s: float) -> Monitors | None:
    """Return the metrics between two moments; None where no sample was taken then.

    A rate covers the time since the sample before: a sample counts where the middle of that time is in between.
    """
    times = columns.times_s
    middle_s = times - INTERVAL_S / 2
    within = (middle_s >= from_s) & (middle_s <= to_s)
    if not within.any():  # shorter than a sample: the one that it lies in
        within = (times >= from_s) & (times - INTERVAL_S <= to_s)
    if not within.any():
        return None
    every = -(-len(times) // MAX_SAMPLES)
    return Monitors(
        interval_s=INTERVAL_S * every,
        begin_s=from_s - begin_s,
        end_s=to_s - begin_s,
        times_s=tuple(float(time) for time in np.round(times[::every] - begin_s, 3)),
        metrics={
            str(metric): monitor
            for metric in sorted(columns.metrics, key=str)
            if (monitor := _summary(columns, metric, within, every)) is not None
        },
    )


def _summary(columns: Columns, metric: Metric, within: np.ndarray, every: int) -> Monitor | None:
    column = columns.column(metric)
    assert column is not None
    # A reason to throttle has a sample only where it held, of which a mean must not be taken.
    if any(key == "reason" for key, _ in metric.labels):
        column = np.nan_to_num(column)
    seen = column[within & ~np.isnan(column)]
    if not len(seen):
        return None
    return Monitor(
        mean=float(seen.mean()),
        p95=float(np.quantile(seen, 0.95)),
        max=float(seen.max()),
        samples=tuple(None if np.isnan(value) else float(f"{value:.6g}") for value in column[::every]),
    )
