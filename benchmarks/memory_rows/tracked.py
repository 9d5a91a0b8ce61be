"""Runs a program with every allocation of torch's CPU allocator followed, and prints the peak.

`python tracked.py program.py`; the program runs under `__main__`.
"""

import runpy
import sys

import torch
from torch._C._profiler import _EventType

sys.argv = sys.argv[1:]
with torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
) as profiler:
    runpy.run_path(sys.argv[0], run_name="__main__")
pending = list(profiler.profiler.kineto_results.experimental_event_tree())
changes = []
while pending:
    event = pending.pop()
    pending += event.children
    kind, fields = event.typed
    if kind == _EventType.Allocation:
        changes.append((event.start_time_ns, fields.total_allocated))
print("PEAK", max(total for _, total in changes))
