"""Hook point `communication`: waiting for collectives that the program itself calls.

The collectives stay as they are, since torch.compile knows them by identity; each of them waits for its work by one
method, and so does a program that waits by itself. The all-reduces of DistributedDataParallel run inside the backward
and are not seen here.
"""

from __future__ import annotations

from typing import Any

from hotloop.probe.frameless import Around
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.sections import around, section


def install(probe: Probe) -> None:
    """Time `Work.wait`; nothing where torch was built without collectives."""
    import torch.distributed

    if torch.distributed.is_available():
        work: Any = torch._C._distributed_c10d.Work
        work.wait = Around(vars(work)["wait"], around(section(probe, Kind.COMMUNICATION), work.wait))
