"""From what the profilers wrote to the observation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from hotloop.model.deep import Deep, Forwards, GrowingContainer, GrowingHooks, OptimizerTime
from hotloop.model.observation import Coverage, Observation
from hotloop.observe.build import leading
from hotloop.observe.decode.instrument_files import DeepFile, usable
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.profile.call_sites import read_call_sites
from hotloop.observe.profile.dataflow import read_dataflow
from hotloop.observe.profile.host_samples import read_host_samples
from hotloop.observe.profile.line_work import read_line_work
from hotloop.observe.profile.loading import read_loading
from hotloop.observe.profile.memory import read_memory
from hotloop.observe.profile.operators import read_flops, read_operators

Reader = Callable[[Path, DeepFile, Timeline], Any]
"""Of the run's folder, the leading process's result and its records: the value for its field of `Deep`."""


def _read_growing_hooks(_: Path, file: DeepFile, lead: Timeline) -> tuple[GrowingHooks, ...]:  # noqa: ARG001
    return msgspec.convert(file.value["hooks"], tuple[GrowingHooks, ...])


def _read_growing_containers(_: Path, file: DeepFile, lead: Timeline) -> tuple[GrowingContainer, ...]:  # noqa: ARG001
    found = msgspec.convert(file.value["containers"], tuple[GrowingContainer, ...])
    return tuple(sorted(found, key=lambda one: (-one.keeps_graph, -one.bytes_per_step)))


def _read_optimizers(_: Path, file: DeepFile, lead: Timeline) -> tuple[OptimizerTime, ...]:  # noqa: ARG001
    return msgspec.convert(file.value, tuple[OptimizerTime, ...])


def _read_forwards(_: Path, file: DeepFile, lead: Timeline) -> tuple[Forwards, ...]:  # noqa: ARG001
    steps = file.value["steps"]
    return tuple(
        Forwards(
            path=row["path"],
            line=row["line"],
            function=row["function"],
            count_per_step=row["count"] / steps,
            unused_per_step=row["unused"] / steps,
            repeated_per_step=row["repeated"] / steps,
            unused_s=row["unused_s"] / steps,
        )
        for row in file.value["rows"]
    )


READERS: dict[str, Reader] = {
    "host": read_host_samples,
    "growing_containers": _read_growing_containers,
    "loading": read_loading,
    "call_sites": read_call_sites,
    "forwards": _read_forwards,
    "dataflow": read_dataflow,
    "memory": read_memory,
    "operators": read_operators,
    "flops": read_flops,
    "line_work": read_line_work,
    "optimizers": _read_optimizers,
}
"""An instrument's name is the name of its field."""
ALSO: dict[str, dict[str, Reader]] = {"growing_containers": {"growing_hooks": _read_growing_hooks}}
"""More fields that an instrument fills."""


def with_deep(
    observation: Observation,
    folder: Path,
    known: dict[int, Timeline],
    names: Iterable[str],
    why_not: str | None,
) -> Observation:
    """Return the observation with what the instruments saw, and with what they could not see.

    Args:
        observation: the light measurement.
        folder: the probe's folder.
        known: the records.
        names: the instruments that were asked for.
        why_not: why none was run; None: they were.
    """
    wanted = tuple(names)
    lead = leading(known)
    if not wanted or lead is None:
        return observation
    if why_not is not None:
        return _add(observation, None, [Coverage("detailed profiling", why_not)])
    deep, gaps = read_deep_results(folder, lead, wanted)
    return _add(observation, _all_workers(deep, observation), gaps)


def _all_workers(deep: Deep | None, observation: Observation) -> Deep | None:
    """Return it with the number of the loader's workers: of many some make no batch within a window."""
    loading = deep.loading if deep is not None else None
    loader = next((one for one in observation.program.loaders if one.used_in_step), None)
    if deep is None or loading is None or loading.process != "worker" or loader is None:
        return deep
    num = max(loading.num_processes, loader.num_workers)
    return msgspec.structs.replace(deep, loading=msgspec.structs.replace(loading, num_processes=num))


def read_deep_results(
    folder: Path, lead: Timeline, names: Iterable[str]
) -> tuple[Deep | None, list[Coverage]]:
    """Return what the instruments saw in the leading process, and what they could not see."""
    seen: dict[str, Any] = {}
    gaps = []
    for name in names:
        file = usable(folder, name, lead.pid)
        if isinstance(file, Coverage):
            gaps.append(file)
        else:
            seen[name] = READERS[name](folder, file, lead)
            seen |= {also: read(folder, file, lead) for also, read in ALSO.get(name, {}).items()}
    return Deep(**seen) if seen else None, gaps


def _add(observation: Observation, deep: Deep | None, gaps: list[Coverage]) -> Observation:
    return msgspec.structs.replace(observation, deep=deep, coverage=(*observation.coverage, *gaps))
