"""From what the profilers wrote to the observation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from hotloop.model.deep import Deep, Forwards, GrowingContainer, GrowingHooks, OptimizerTime
from hotloop.model.observation import Observation
from hotloop.observe.decode.instrument_files import DeepFile, has_seen, result_of
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


class Seen(msgspec.Struct, frozen=True):
    """What the instruments saw in one run: values, those of cut windows, and why others saw nothing."""

    values: dict[str, Any]
    cut: frozenset[str]
    refused: dict[str, str]


def read_seen(folder: Path, lead: Timeline, names: Iterable[str]) -> Seen:
    """Return what the instruments saw in the leading process; one that had no whole step saw nothing."""
    values: dict[str, Any] = {}
    cut: set[str] = set()
    refused: dict[str, str] = {}
    for name in names:
        file = result_of(folder, name, lead.pid)
        if file is None or (file.cut and not has_seen(file)):
            continue
        if has_seen(file):
            values[name] = READERS[name](folder, file, lead)
            values |= {also: read(folder, file, lead) for also, read in ALSO.get(name, {}).items()}
            cut |= {name} if file.cut else set()
        else:
            refused[name] = file.error or "the instrument saw nothing"
    return Seen(values, frozenset(cut), refused)


def read_deep(folder: Path, lead: Timeline, names: Iterable[str]) -> Deep | None:
    """Return what the instruments saw in the leading process; None: nothing."""
    return deep_of(read_seen(folder, lead, names).values)


def deep_of(values: dict[str, Any]) -> Deep | None:
    """Return what instruments saw, by name, as one value; None: nothing."""
    return Deep(**values) if values else None


def with_account(observation: Observation) -> Observation:
    """Return it with the account of the peak where the rest of its memory is."""
    deep = observation.deep
    if deep is None or deep.memory is None or deep.memory.account is None:
        return observation
    memory = msgspec.structs.replace(observation.memory, account=deep.memory.account)
    deep = msgspec.structs.replace(deep, memory=msgspec.structs.replace(deep.memory, account=None))
    return msgspec.structs.replace(observation, memory=memory, deep=deep)


def with_all_workers(observation: Observation) -> Observation:
    """Return it with the number of the loader's workers: of many some make no batch within a window."""
    deep = observation.deep
    loading = deep.loading if deep is not None else None
    loader = next((one for one in observation.program.loaders if one.used_in_step), None)
    if deep is None or loading is None or loading.process != "worker" or loader is None:
        return observation
    num = max(loading.num_processes, loader.num_workers)
    loading = msgspec.structs.replace(loading, num_processes=num)
    return msgspec.structs.replace(observation, deep=msgspec.structs.replace(deep, loading=loading))
