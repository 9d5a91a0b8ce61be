"""Read a trace out of memory."""

import io
import json
from typing import Any

from hotloop.trace.read.reader import read_blocks
from hotloop.trace.read.source import PlainBlocks
from hotloop.trace.read.trace import Trace


def read_events(events: list[dict[str, Any]]) -> Trace:
    return read_bytes(json.dumps({"traceEvents": events}).encode())


def read_bytes(data: bytes) -> Trace:
    return read_blocks("test.json", PlainBlocks(io.BytesIO(data)))
