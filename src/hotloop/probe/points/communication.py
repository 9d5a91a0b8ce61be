"""Hook point `communication`: collectives that the program itself calls.

The all-reduces of DistributedDataParallel run inside the backward and are not seen here.
"""

from __future__ import annotations

import functools
from typing import Any

from hotloop.probe.events import Kind, begin, end
from hotloop.probe.probe import Probe

COLLECTIVES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "broadcast_object_list", "gather", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "scatter", "send", "recv",
)  # fmt: skip


def install(probe: Probe) -> None:
    """Patch the functions of `torch.distributed`."""
    import torch.distributed

    for name in COLLECTIVES:
        original = getattr(torch.distributed, name, None)
        if original is not None:
            setattr(torch.distributed, name, _timed(probe, original))


def _timed(probe: Probe, original: Any) -> Any:
    recorder = probe.recorder
    begins, ends = begin(Kind.COMMUNICATION), end(Kind.COMMUNICATION)

    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        if probe.asleep or not recorder.own_thread():
            return original(*args, **kwargs)
        recorder.mark(begins)
        try:
            return original(*args, **kwargs)
        finally:
            recorder.mark(ends)

    return collective
