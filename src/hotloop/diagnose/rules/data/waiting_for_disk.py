"""Loading waits for the disk.

## What it does
Where steps wait for data, takes how many cores had nothing to run but a wait for the disk, against the processes that
load. It says how much of the wait for data is the disk's.

## Why it is slow
Each read of a file that is not in memory is a wait: 0.1 ms for a solid-state disk, 10 ms for a rotating or network one.

## When it is fine
In the first epoch, where files that fit into memory are read once.

## Example
```python
def __getitem__(self, index):
    return decode(open(self.paths[index], "rb").read())
```
Use instead:
```python
# shards that are read in sequence (webdataset, tar), or a copy on a faster disk
```

## References
- [Linux, proc_stat(5): iowait](https://man7.org/linux/man-pages/man5/proc_stat.5.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.choosing_samples import making_cost
from hotloop.diagnose.price.cost import MIDWAY
from hotloop.diagnose.price.facts import num_cores, step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size

MIN_SHARE_TO_REPORT = 0.3
"""Share of a loading process's time. Linux says itself that iowait is not reliable, so less is not claimed."""
LEAST_RATE = 1 << 20
"""Bytes a second: with less read, others wait for the disk, not this program."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Set the cores that wait for the disk against the processes that load."""
    seen, loader = observation.monitors, step_loader(observation)
    waits = seen.mean("cpu_iowait_ratio") if seen is not None else None
    read = seen.mean("disk_read_bytes_per_s") if seen is not None else None
    if waits is None or read is None:
        raise Abstain("the time that cores wait for the disk")
    if loader is None or read < LEAST_RATE:
        return
    share = min(1.0, waits * num_cores(observation) / max(1, loader.num_workers))
    if share < MIN_SHARE_TO_REPORT:
        return
    cost = making_cost(observation, bursts=True).times(share)
    yield Symptom(
        evidence=f"loading waited for the disk {share:.0%} of its time, reading {byte_size(read)}/s",
        metric="monitors.metrics.cpu_iowait_ratio.mean",
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
        path=loader.path,
        line=loader.line,
        severity=Severity.INFO,
    )


rule = Rule(
    code="waiting-for-disk",
    title="Loading waits for the disk",
    advice="Read in sequence from larger files, or from a faster disk; more workers wait at the same time.",
    optimization="loader_workers",
    made_by_neighbours=True,
    page=__doc__ or "",
    check=check,
)
