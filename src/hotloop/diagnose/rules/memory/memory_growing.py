"""Memory grows with every step.

## What it does
Looks at the memory of the training process, of its loader workers and of its device over the steady steps. It is a
finding where it rose all through them, from
each third to the next, at the end at a third of the middle's rate or more, and a warning where it would fill the
machine within a day; where nothing is seen to keep it, within 200 times as long as it was watched. Lists,
dictionaries and caches of the program's own that gain as much with every step, or with every sample, are named.

## Why it is slow
Something is kept of every step: a loss with its graph in a running total, outputs in a list, a cache without a bound.
The program slows down as it grows, and dies when memory is full, hours later.

## When it is fine
A replay buffer or a cache that is being filled, and has a bound.

## Example
```python
total += loss
history.append(output)
```
Use instead:
```python
total += loss.detach()
history.append(output.detach().mean().item())
```

## References
- [PyTorch, FAQ: my model reports out of memory](https://docs.pytorch.org/docs/stable/notes/faq.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import measured_step
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.deep import GrowingContainer
from hotloop.model.finding import Severity
from hotloop.model.monitors import Monitors
from hotloop.model.observation import Observation
from hotloop.model.quantities import average, byte_size
from hotloop.observe.profile.container_line import growing_line

MIN_SAMPLES = 6
"""Two for each third."""
LEAST_BYTES = 8 << 20
"""Over the steady steps: an allocator that settles moves by some megabytes."""
STEADY = 0.3
"""The last third grows at least at this share of the middle one's rate: what settles slows down."""
RISING = 0.8
"""Kendall's tau over the steady steps: 0.3 to 0.6 where loader workers move memory by 10%, 1.0 for leaks
from 4 MB/s."""
ENOUGH = 200
"""Samples of a long run, evenly spaced."""
PART = 0.3
"""Of the growth: what a container gains by itself to be called its cause."""
SOON_S = 86_400.0
FORESEEN = 200
"""Times as long as a rise was watched: a cache that fills in its first seconds rises like a leak."""
OF_PROGRAM, OF_WORKERS, OF_GPU = "program_memory_bytes", "worker_memory_bytes", "gpu_memory_used_bytes"
_GPU = re.compile(r'gpu="(\d+)"')
ON_HOST = (OF_PROGRAM, OF_WORKERS)
_WHOSE = {OF_WORKERS: "the loader workers together: "}


@dataclass(frozen=True)
class Growth:
    """How fast memory grew, in bytes a second."""

    rate: float
    low: float
    high: float
    last: float
    """Bytes at the end."""
    seen_s: float
    """How long it was watched."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Fit the memory of the process, of its loader workers, and of its device."""
    step, monitors = measured_step(observation), observation.monitors
    names = [] if monitors is None else [name for name in monitors.metrics if _is_memory(name, observation)]
    if monitors is None or not names:
        raise Abstain("the memory of the program over its steps")
    for name in names:
        growth = _growth(monitors, name)
        if growth is None:
            continue
        limit = _limit(observation, monitors, name, growth)
        when = f"; at this rate memory is full in {_span(limit / growth.rate)}" if limit else ""
        holder = _holder(observation, name, growth)
        held = _told(holder, of_workers=name == OF_WORKERS)
        horizon_s = SOON_S if held else min(SOON_S, FORESEEN * growth.seen_s)
        soon = limit is not None and limit / growth.rate < horizon_s
        yield Symptom(
            evidence=f"{_WHOSE.get(name, '')}{byte_size(growth.rate)}/s "
            f"[{byte_size(growth.low)}, {byte_size(growth.high)}], "
            f"{byte_size(growth.rate * step.whole_s)} a step, all through {growth.seen_s:.0f} s of steady steps"
            f"{when}{held}",
            metric=f"monitors.metrics.{name}",
            path=holder.path if holder and name == OF_WORKERS else None,
            line=growing_line(holder) if holder and name == OF_WORKERS else None,
            severity=Severity.WARNING if soon else Severity.INFO,
        )


def grows(observation: Observation) -> bool:
    """Whether memory was seen to grow."""
    monitors = observation.monitors
    names = [] if monitors is None else [name for name in monitors.metrics if _is_memory(name, observation)]
    return monitors is not None and any(_growth(monitors, name) for name in names)


def container_of(observation: Observation) -> GrowingContainer | None:
    """Return the container whose growth can be that of the training process."""
    growth = None if observation.monitors is None else _growth(observation.monitors, OF_PROGRAM)
    return None if growth is None else _holder(observation, OF_PROGRAM, growth)


def _holder(observation: Observation, name: str, growth: Growth) -> GrowingContainer | None:
    """Return the container whose growth can be the memory's: it keeps graphs, or gains enough by itself."""
    step, deep = observation.step, observation.deep
    if step is None or deep is None:
        return None
    if name == OF_WORKERS:
        growing = deep.loading.growing if deep.loading is not None else ()
        turns_per_s = step.samples_per_s or 0.0
    else:
        growing, turns_per_s = deep.growing_containers or (), 1.0 / step.whole_s
    enough = PART * growth.rate
    return next(
        (one for one in growing if one.keeps_graph or one.bytes_per_step * turns_per_s >= enough), None
    )


def _told(holder: GrowingContainer | None, *, of_workers: bool) -> str:
    """Say which container grows."""
    if holder is None:
        return ""
    held = "tensors or arrays" if holder.has_tensors else "Python objects"
    held = "tensors with their graph" if holder.keeps_graph else held
    gained = average(holder.per_step, "entry", "entries")
    return f"; the {holder.kind} {holder.name} gains {gained} a {'sample' if of_workers else 'step'}, {held}"


def _is_memory(name: str, observation: Observation) -> bool:
    """Whether a metric is the program's memory: of its processes, or that of a device which nobody else uses."""
    if name in ON_HOST or observation.monitors is None:
        return name in ON_HOST
    others = observation.monitors.metrics.get(name.replace(OF_GPU, "gpu_foreign_num_processes"))
    alone = others is not None and others.max == 0
    return name.startswith(OF_GPU) and observation.program.device != "cpu" and alone


def _growth(monitors: Monitors, name: str) -> Growth | None:
    """Return how fast a metric grew; None: not all through the steady steps, or too little to tell."""
    if name not in monitors.metrics:
        return None
    seen = [
        (time, value)
        for time, value in zip(monitors.times_s, monitors.metrics[name].samples, strict=False)
        if value is not None and monitors.begin_s <= time <= monitors.end_s
    ]
    if len(seen) < MIN_SAMPLES:
        return None
    third = len(seen) // 3
    parts = [seen[:third], seen[third : len(seen) - third], seen[len(seen) - third :]]
    times, values = ([median(pair[at] for pair in part) for part in parts] for at in (0, 1))
    if _rising(seen) < RISING:
        return None
    rates = [(values[at + 1] - values[at]) / (times[at + 1] - times[at]) for at in (0, 1)]
    rate = (values[2] - values[0]) / (times[2] - times[0])
    total = rate * (seen[-1][0] - seen[0][0])
    if min(rates) <= 0 or rates[1] < STEADY * rates[0] or total < LEAST_BYTES:
        return None
    return Growth(rate, min(rates), max(rates), seen[-1][1], seen[-1][0] - seen[0][0])


def _rising(seen: list[tuple[float, float]]) -> float:
    """Return Kendall's tau: 1 where every sample is larger than all before it, 0 where they come and go."""
    some = seen[:: -(-len(seen) // ENOUGH)]
    pairs = [(after > before) - (after < before) for (_, before), (_, after) in combinations(some, 2)]
    return sum(pairs) / len(pairs)


def _limit(observation: Observation, monitors: Monitors, name: str, growth: Growth) -> float | None:
    """Return the bytes that are left; None: not known."""
    if name in ON_HOST:
        return monitors.mean("memory_available_bytes")
    sizes = [one.get("memory_bytes") for one in observation.machine.get("accelerators") or ()]
    at = int(found.group(1)) if (found := _GPU.search(name)) else len(sizes)
    sizes = sizes[at : at + 1] or sizes  # the driver numbers them alike
    known = [float(size) for size in sizes if isinstance(size, int)]
    return max(0.0, min(known) - growth.last) if known else None


def _span(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


rule = Rule(
    code="memory-growing",
    title="Memory grows with every step",
    advice="Keep numbers of a step (loss.item(), output.detach()), not tensors with their graph; bound what is kept.",
    page=__doc__ or "",
    check=check,
)
