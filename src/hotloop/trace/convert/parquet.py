"""One Parquet file per table: host, device and memory events, with names spelled out."""

from pathlib import Path
from typing import Any

import numpy as np

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.trace.read.columns import Array
from hotloop.trace.read.kinds import Kind
from hotloop.trace.read.trace import Trace


def write_parquet(trace: Trace, target: Path) -> int:
    """Write `host.parquet`, `device.parquet` and `memory.parquet` into a folder.

    Returns:
        The number of rows.

    Raises:
        HotloopError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise HotloopError(
            "Parquet needs pyarrow, which is not installed",
            "pip install 'hotloop[parquet]'",
            ExitCode.MACHINE,
        ) from error
    target.mkdir(parents=True, exist_ok=True)
    total = 0
    for name, columns in _tables(trace).items():
        table = pa.table({key: _arrow(pa, trace, key, values) for key, values in columns.items()})
        parquet.write_table(table, target / f"{name}.parquet", compression="zstd")
        total += table.num_rows
    return total


def _arrow(pa: Any, trace: Trace, key: str, values: Array) -> Any:
    """Names and kinds as dictionaries, missing ids as nulls, the rest as it is."""
    if key == "name":
        return pa.DictionaryArray.from_arrays(pa.array(values), pa.array(trace.names, pa.string()))
    if key == "kind":
        return pa.DictionaryArray.from_arrays(
            pa.array(values), pa.array([kind.name.lower() for kind in Kind])
        )
    missing = values == -1 if values.dtype.kind == "i" and not key.endswith("_ns") else None
    return pa.array(values, mask=missing)


def _tables(trace: Trace) -> dict[str, dict[str, Array]]:
    host, device, memory = trace.host, trace.device, trace.memory
    correlation = np.full(len(host), -1, dtype=np.int64)
    correlation[trace.calls.row] = trace.calls.correlation
    return {
        "host": {
            "kind": host.kind,
            "name": host.name,
            "start_ns": host.start,
            "duration_ns": host.end - host.start,
            "thread": host.thread,
            "correlation": correlation,
        },
        "device": {
            "kind": device.kind,
            "name": device.name,
            "start_ns": device.start,
            "duration_ns": device.end - device.start,
            "device": device.device,
            "stream": device.stream,
            "correlation": device.correlation,
            "size_bytes": device.size_bytes,
            "is_communication": device.is_communication,
        },
        "memory": {
            "start_ns": memory.start,
            "moved_bytes": memory.moved_bytes,
            "allocated_bytes": memory.allocated,
            "reserved_bytes": memory.reserved,
            "device_type": memory.device_type,
            "device_id": memory.device_id,
        },
    }
