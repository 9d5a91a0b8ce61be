"""Runs a program with every allocation of torch's CPU allocator followed, and prints the peak of its later steps.

`python tracked.py program.py`; the program runs under `__main__`. The first `FIRST` steps are left out: a model is
compiled, and blocks are chosen, in them.
"""

import runpy
import sys

import torch
from torch._C._profiler import _EventType

FIRST = 4
sys.argv = sys.argv[1:]
with torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
) as profiler:
    runpy.run_path(sys.argv[0], run_name="__main__")
pending = list(profiler.profiler.kineto_results.experimental_event_tree())
changes, steps = [], []
while pending:
    event = pending.pop()
    pending += event.children
    kind, fields = event.typed
    if kind == _EventType.Allocation:
        changes.append((event.start_time_ns, fields.total_allocated))
    elif event.name.startswith("Optimizer.step#"):
        steps.append(event.end_time_ns)
begin = sorted(steps)[FIRST - 1]
print("PEAK", max(total for at, total in changes if at > begin))
