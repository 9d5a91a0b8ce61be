"""Nsight Systems exports (SQLite) as the same trace: kernels, copies, runtime calls and NVTX ranges."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.model.errors import HotloopError
from hotloop.trace.read.columns import NONE, Array, Interner, integers
from hotloop.trace.read.kinds import Kind, is_communication
from hotloop.trace.read.stream import Loss
from hotloop.trace.read.trace import (
    Calls,
    DeviceAnnotations,
    DeviceEvents,
    DeviceProperties,
    HostEvents,
    MemoryEvents,
    Metadata,
    Operators,
    SyncEvents,
    Tally,
    Trace,
)

MAX_NAME = 10_000
"""Characters of a name that are kept; demangled kernels have some hundreds."""
_MAGIC = b"SQLite format 3\x00"
_COPY_KINDS = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
"""`CUpti_ActivityMemcpyKind`."""
_PROCESS, _THREAD = "globalPid", "globalTid"
_NUMBER = "({} >> 24 & 16777215)"
"""The process's own number within either, as the documentation of the export says."""
_PAGEABLE = 0
"""`CUpti_ActivityMemoryKind`-like column of the export: 0 pageable, 1 pinned, 2 device."""


def is_nsight(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def read_nsight(path: Path) -> Iterator[Trace]:
    """The traces in an `nsys export --type sqlite`: one for each process that used a device.

    Raises:
        HotloopError: the database is not such an export.
    """
    num_bytes = path.stat().st_size
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            processes = _processes(connection)
            if len(processes) < 2:
                yield _Export(connection).trace(path.name, num_bytes)
                return
            for process in processes:
                yield _Export(connection, process).trace(f"{path.name}#{process}", num_bytes)
    except sqlite3.DatabaseError as error:
        raise HotloopError(
            f"{path.name} cannot be read as an Nsight Systems export: {error}",
            "export it again: nsys export --type sqlite REPORT.nsys-rep",
        ) from error


def _processes(connection: sqlite3.Connection) -> list[int]:
    """Numbers of the processes that launched kernels; none where the export does not tell them apart."""
    table = "CUPTI_ACTIVITY_KIND_KERNEL"
    if not any(row[1] == _PROCESS for row in connection.execute(f"PRAGMA table_info({table})")):
        return []
    rows = connection.execute(f"SELECT DISTINCT {_NUMBER.format(_PROCESS)} FROM {table} WHERE {_PROCESS} > 0")
    return sorted(int(number) for (number,) in rows)


class _Export:
    """The tables of an export that are there; which ones depends on what was captured.

    Args:
        connection: the database.
        process: whose rows are read: threads, correlations and idle devices are each process's own. None: all.
    """

    def __init__(self, connection: sqlite3.Connection, process: int | None = None) -> None:
        self._connection = connection
        self._process = process
        self._names = Interner()
        self._threads = Interner()
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {str(name) for (name,) in rows}
        if not self._tables & {"StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"}:
            raise sqlite3.DatabaseError("it has none of its tables")
        self._strings: dict[int, str] = (
            dict(connection.execute("SELECT id, value FROM StringIds")) if "StringIds" in self._tables else {}
        )

    def trace(self, label: str, num_bytes: int) -> Trace:
        device = self._device()
        host, calls, operators = self._host()
        names: list[str] = self._names.values_in_order
        communicates = np.array([is_communication(name) for name in names] or [False])
        num = len(device["start"]) + len(host.start)
        return Trace(
            label=label,
            names=names,
            texts=[],
            threads=self._threads.values_in_order,
            thread_names={},
            host=host,
            operators=operators,
            calls=calls,
            device=DeviceEvents(
                **device, is_communication=(device["kind"] == Kind.KERNEL) & communicates[device["name"]]
            ),
            memory=MemoryEvents(*(_integers([]) for _ in range(6))),
            syncs=SyncEvents(*(_integers([]) for _ in range(8))),
            annotations=DeviceAnnotations(*(_integers([]) for _ in range(5))),
            metadata=Metadata(devices=self._devices()),
            loss=Loss(),
            tally=Tally(num_events=num),
            num_bytes=num_bytes,
        )

    def _columns(self, table: str) -> set[str]:
        return {str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({table})")}

    def _select(self, table: str, wanted: tuple[str, ...]) -> list[tuple[Any, ...]]:
        if table not in self._tables:
            return []
        there = self._columns(table)
        listed = ", ".join(name if name in there else f"NULL AS {name}" for name in wanted)
        owner = next((name for name in (_PROCESS, _THREAD) if name in there), None)
        own = f" AND {_NUMBER.format(owner)} = {self._process}" if owner and self._process is not None else ""
        rows = self._connection.execute(f"SELECT {listed} FROM {table} WHERE typeof(start) = 'integer'{own}")
        return list(rows)

    def _string(self, value: Any) -> str:
        name = self._strings.get(value, value) if isinstance(value, int) else value or ""
        return str(name)[:MAX_NAME]

    def _device(self) -> dict[str, Array]:
        rows: list[tuple[Any, ...]] = []
        common = ("start", "end", "deviceId", "streamId", "correlationId")
        for row in self._select(
            "CUPTI_ACTIVITY_KIND_KERNEL", (*common, "demangledName", "shortName", "graphNodeId")
        ):
            name = self._string(row[5] if row[5] is not None else row[6])
            rows.append((Kind.KERNEL, self._names[name], *row[:5], NONE, row[7] or NONE))
        for row in self._select(
            "CUPTI_ACTIVITY_KIND_MEMCPY", (*common, "bytes", "copyKind", "srcKind", "dstKind")
        ):
            rows.append((Kind.MEMCPY, self._names[_copy_name(*row[6:9])], *row[:5], row[5] or 0, NONE))
        for row in self._select("CUPTI_ACTIVITY_KIND_MEMSET", (*common, "bytes")):
            rows.append((Kind.MEMSET, self._names["Memset (Device)"], *row[:5], row[5] or 0, NONE))
        columns = list(zip(*rows, strict=True)) if rows else [()] * 9
        nothing = np.full(len(rows), NONE, dtype=np.int64)
        return {
            "kind": _integers(columns[0]).astype(np.int8),
            "name": _integers(columns[1]).astype(np.int32),
            "start": _integers(columns[2]),
            "end": np.maximum(_integers(columns[3]), _integers(columns[2])),
            "device": _integers(columns[4]),
            "stream": _integers(columns[5]),
            "correlation": _integers(columns[6]),
            "size_bytes": _integers(columns[7]),
            "graph_node": _integers(columns[8]),
            "external": nothing,
            "grid": nothing,
            "block": nothing,
            "collective": nothing,
            "in_elements": nothing,
            "out_elements": nothing,
            "group": nothing,
            "dtype": nothing,
        }

    def _host(self) -> tuple[HostEvents, Calls, Operators]:
        rows: list[tuple[int, int, int, int, int, int]] = []
        for start, end, tid, correlation, name in self._select(
            "CUPTI_ACTIVITY_KIND_RUNTIME", ("start", "end", "globalTid", "correlationId", "nameId")
        ):
            plain = self._string(name).split("_v", 1)[0]
            rows.append(
                (
                    Kind.CALL,
                    self._names[plain],
                    start,
                    end or start,
                    self._threads[tid, tid],
                    correlation or NONE,
                )
            )
        for start, end, tid, text, text_id in self._select(
            "NVTX_EVENTS", ("start", "end", "globalTid", "text", "textId")
        ):
            if end is not None:
                name = self._names[str(text)[:MAX_NAME] if text is not None else self._string(text_id)]
                rows.append((Kind.ANNOTATION, name, start, end, self._threads[tid, tid], NONE))
        columns = [_integers(column) for column in zip(*rows, strict=True)] if rows else [_integers([])] * 6
        kind, name_column, start_column, end_column, thread, correlation_column = columns
        host = HostEvents(
            kind.astype(np.int8),
            name_column.astype(np.int32),
            start_column,
            np.maximum(end_column, start_column),
            thread.astype(np.int32),
        )
        calls = np.flatnonzero(kind == Kind.CALL)
        nothing = np.full(len(calls), NONE, dtype=np.int64)
        empty = _integers([])
        return host, Calls(calls, correlation_column[calls], nothing), Operators(*([empty] * 8))

    def _devices(self) -> tuple[DeviceProperties, ...]:
        if "TARGET_INFO_GPU" not in self._tables:
            return ()
        there = self._columns("TARGET_INFO_GPU")
        wanted = [name if name in there else "NULL" for name in ("id", "name", "totalMemory", "smCount")]
        rows = self._connection.execute(f"SELECT {', '.join(wanted)} FROM TARGET_INFO_GPU")
        return tuple(
            DeviceProperties(
                id=_number(number) or 0,
                name=str(name or "")[:MAX_NAME],
                memory_bytes=_number(memory),
                num_sms=_number(sms),
            )
            for number, name, memory, sms in rows
        )


def _copy_name(kind: int | None, source: int | None, target: int | None) -> str:
    direction = _COPY_KINDS.get(kind or 0, "unknown")
    pageable = (source == _PAGEABLE and direction.startswith("H")) or (
        target == _PAGEABLE and direction.endswith("H")
    )
    return f"Memcpy {direction} (Pageable)" if pageable else f"Memcpy {direction}"


def _number(value: Any) -> int | None:
    """SQLite lets any cell hold any type: what is no number is missing."""
    return value if isinstance(value, int) else None


def _integers(values: Any) -> Array:
    return integers(
        [int(value) if isinstance(value, int) else value for value in values]
    )  # kinds are of an enum
