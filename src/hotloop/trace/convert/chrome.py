"""Chrome JSON that Perfetto opens: valid, with launches joined to kernels by arrows."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from hotloop.trace.link.launches import link
from hotloop.trace.read.kinds import Kind
from hotloop.trace.read.trace import Trace

_CATEGORIES = {
    Kind.OPERATOR: "cpu_op",
    Kind.ANNOTATION: "user_annotation",
    Kind.PYTHON: "python_function",
    Kind.CALL: "cuda_runtime",
    Kind.OVERHEAD: "overhead",
    Kind.KERNEL: "kernel",
    Kind.MEMCPY: "gpu_memcpy",
    Kind.MEMSET: "gpu_memset",
}
_AT_ONCE = 4096


def write_chrome(trace: Trace, target: Path) -> int:
    """Write the trace; gzip where the name ends in .gz.

    Returns:
        The number of events.
    """
    encoder = msgspec.json.Encoder()
    head = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "deviceProperties": list(trace.metadata.devices),
        "distributedInfo": {"rank": trace.metadata.rank, "world_size": trace.metadata.world_size},
    }
    written = 0
    with _opened(target) as file:
        file.write(encoder.encode(head)[:-1] + b',"traceEvents":[\n')
        batch: list[bytes] = []
        for event in _events(trace):
            batch.append(encoder.encode(event))
            if len(batch) == _AT_ONCE:
                file.write((b",\n" if written else b"") + b",\n".join(batch))
                written += len(batch)
                batch.clear()
        file.write((b",\n" if written and batch else b"") + b",\n".join(batch) + b"\n]}\n")
    return written + len(batch)


def _opened(target: Path) -> IO[bytes]:
    return gzip.open(target, "wb", compresslevel=6) if target.suffix == ".gz" else target.open("wb")  # type: ignore[return-value]


def _us(ns: int) -> msgspec.Raw:
    """Exact: a float would lose nanoseconds above 2**43 us."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return msgspec.Raw(f"{sign}{ns // 1000}.{ns % 1000:03d}".encode())


def _events(trace: Trace) -> Iterator[dict[str, Any]]:
    yield from _thread_names(trace)
    yield from _host_events(trace)
    yield from _device_events(trace)
    yield from _syncs(trace)
    yield from _arrows(trace)
    yield from _memory_events(trace)


def _thread_names(trace: Trace) -> Iterator[dict[str, Any]]:
    for index, name in trace.thread_names.items():
        process, thread = trace.threads[index]
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}


def _host_events(trace: Trace) -> Iterator[dict[str, Any]]:
    host = trace.host
    arguments = dict(zip(trace.operators.row.tolist(), range(len(trace.operators.row)), strict=True))
    correlations = dict(zip(trace.calls.row.tolist(), trace.calls.correlation.tolist(), strict=True))
    columns = (
        host.kind.tolist(),
        host.name.tolist(),
        host.start.tolist(),
        host.end.tolist(),
        host.thread.tolist(),
    )
    for row, (kind, name, start, end, thread) in enumerate(zip(*columns, strict=True)):
        process, tid = trace.threads[thread]
        event: dict[str, Any] = {
            "ph": "X", "cat": _CATEGORIES[Kind(kind)], "name": trace.names[name], "pid": process, "tid": tid,
            "ts": _us(start), "dur": _us(end - start),
        }  # fmt: skip
        if row in correlations:
            event["args"] = {"correlation": correlations[row]}
        elif row in arguments:
            event["args"] = _operator_args(trace, arguments[row])
        yield event


def _operator_args(trace: Trace, row: int) -> dict[str, Any]:
    table = trace.operators
    args: dict[str, Any] = {"External id": int(table.external[row])}
    texts = {
        "Input Dims": table.dims,
        "Input type": table.types,
        "Concrete Inputs": table.concrete,
        "Call stack": table.stack,
    }
    for name, column in texts.items():
        if column[row] >= 0:
            args[name] = msgspec.Raw(trace.texts[int(column[row])])
    if table.sequence[row] >= 0:
        args |= {"Sequence number": int(table.sequence[row]), "Fwd thread id": int(table.forward_thread[row])}
    return args


def _device_events(trace: Trace) -> Iterator[dict[str, Any]]:
    device = trace.device
    for row in range(len(device)):
        args: dict[str, Any] = {
            "device": int(device.device[row]),
            "stream": int(device.stream[row]),
            "correlation": int(device.correlation[row]),
            "External id": int(device.external[row]),
        }
        if device.size_bytes[row] >= 0:
            args["bytes"] = int(device.size_bytes[row])
        for name, column in (("Collective name", device.collective), ("Process Group Name", device.group)):
            if column[row] >= 0:
                args[name] = trace.names[int(column[row])]
        yield {
            "ph": "X", "cat": _CATEGORIES[Kind(int(device.kind[row]))], "name": trace.names[int(device.name[row])],
            "pid": int(device.device[row]), "tid": int(device.stream[row]), "ts": _us(int(device.start[row])),
            "dur": _us(int(device.end[row] - device.start[row])), "args": args,
        }  # fmt: skip


def _syncs(trace: Trace) -> Iterator[dict[str, Any]]:
    syncs = trace.syncs
    for row in range(len(syncs.start)):
        device, stream = int(syncs.device[row]), int(syncs.stream[row])
        args = {
            "device": device,
            "stream": stream,
            "correlation": int(syncs.correlation[row]),
            "wait_on_stream": int(syncs.wait_stream[row]),
            "wait_on_cuda_event_record_corr_id": int(syncs.wait_record[row]),
        }
        yield {
            "ph": "X", "cat": "cuda_sync", "name": trace.names[int(syncs.name[row])], "pid": device, "tid": stream,
            "ts": _us(int(syncs.start[row])), "dur": _us(int(syncs.end[row] - syncs.start[row])), "args": args,
        }  # fmt: skip


def _arrows(trace: Trace) -> Iterator[dict[str, Any]]:
    host, device = trace.host, trace.device
    call = link(trace, np.empty(0, dtype=np.int32)).call
    for row in np.flatnonzero(call >= 0).tolist():
        process, thread = trace.threads[int(host.thread[call[row]])]
        common = {"id": int(device.correlation[row]), "cat": "ac2g", "name": "ac2g"}
        yield {"ph": "s", **common, "pid": process, "tid": thread, "ts": _us(int(host.start[call[row]]))}
        place = {"pid": int(device.device[row]), "tid": int(device.stream[row])}
        yield {"ph": "f", "bp": "e", **common, **place, "ts": _us(int(device.start[row]))}


def _memory_events(trace: Trace) -> Iterator[dict[str, Any]]:
    memory = trace.memory
    process, thread = trace.threads[0] if trace.threads else (0, 0)
    for row in range(len(memory.start)):
        yield {
            "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": process, "tid": thread,
            "ts": _us(int(memory.start[row])),
            "args": {
                "Bytes": int(memory.moved_bytes[row]), "Total Allocated": int(memory.allocated[row]),
                "Total Reserved": int(memory.reserved[row]), "Device Type": int(memory.device_type[row]),
                "Device Id": int(memory.device_id[row]),
            },
        }  # fmt: skip
