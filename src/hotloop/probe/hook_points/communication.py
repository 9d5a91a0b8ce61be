"""Hook point `communication`: collectives that the program itself calls.

The all-reduces of DistributedDataParallel run inside the backward and are not seen here.
"""

from __future__ import annotations

import functools

from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.sections import around, section

COLLECTIVES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "broadcast_object_list", "gather", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "scatter", "send", "recv",
)  # fmt: skip


def install(probe: Probe) -> None:
    """Patch the functions of `torch.distributed`."""
    import torch.distributed

    marks = section(probe, Kind.COMMUNICATION)
    for name in COLLECTIVES:
        original = getattr(torch.distributed, name, None)
        if original is not None:
            setattr(torch.distributed, name, functools.wraps(original)(around(marks, original)))
