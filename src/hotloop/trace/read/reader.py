"""Read traces from files."""

from collections.abc import Iterator
from pathlib import Path

from hotloop.trace.read.builder import TraceBuilder
from hotloop.trace.read.source import Blocks, ReadAhead, find_files, open_traces
from hotloop.trace.read.stream import CHUNK, EventStream
from hotloop.trace.read.trace import Trace


def read_traces(*paths: str | Path) -> Iterator[Trace]:
    """Every trace in files and folders, one after the other.

    Raises:
        HotloopError: a path does not exist, or an archive cannot be opened.
    """
    for path in find_files([Path(p) for p in paths]):
        for label, blocks in open_traces(path):
            yield read_blocks(label, blocks)


def read_trace(path: str | Path) -> Trace:
    """The one trace in a file; the first where there are several."""
    return next(read_traces(path))


def read_blocks(label: str, blocks: Blocks) -> Trace:
    """A trace from a stream of bytes."""
    with ReadAhead(blocks, CHUNK) as ahead:
        stream = EventStream(ahead)
        builder = TraceBuilder()
        for events in stream:
            builder.add(events, stream.verbatim)
    return builder.finish(label, stream, blocks.damage)
