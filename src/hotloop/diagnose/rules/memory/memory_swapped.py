"""The machine reads back from swap what did not fit into memory.

## What it does
Takes the rate at which pages came back from swap during the steady steps. It is a warning where that alone takes a
tenth of a thread's time.

## Why it is slow
Memory that is swapped out is a disk: a page is 4 KiB and a wait.

## When it is fine
Pages that were swapped out long ago and are not used again cost nothing, and are not counted here.

## Example
```python
samples = [load(path) for path in paths]  # more than the memory
```
Use instead:
```python
samples = numpy.load("samples.npy", mmap_mode="r")
```

## References
- [Linux, proc_vmstat(5): pswpin](https://man7.org/linux/man-pages/man5/proc_vmstat.5.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size

PAGE_S = 100e-6
"""A random read of 4 KiB from a solid-state disk takes 0.1 ms, from a rotating one a hundred times as long."""
PAGE_BYTES = 4096
MIN_SHARE_TO_REPORT, LEAST = 0.1, 0.01
"""Of a thread's time."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Put a price on what came back."""
    rate = observation.monitors.mean("swap_in_bytes_per_s") if observation.monitors is not None else None
    if rate is None:
        raise Abstain("the rate at which pages are swapped in")
    share = rate / PAGE_BYTES * PAGE_S
    if share >= LEAST:
        yield Symptom(
            evidence=(
                f"{byte_size(rate)}/s came back from swap, at a disk's 0.1 ms a page {share:.0%} of a thread"
            ),
            metric="monitors.metrics.swap_in_bytes_per_s.mean",
            severity=Severity.WARNING if share >= MIN_SHARE_TO_REPORT else Severity.INFO,
        )


rule = Rule(
    code="memory-swapped",
    title="The machine swaps",
    advice="Use less memory: fewer workers, memory-mapped data, a smaller batch; or a machine with more.",
    page=__doc__ or "",
    check=check,
)
