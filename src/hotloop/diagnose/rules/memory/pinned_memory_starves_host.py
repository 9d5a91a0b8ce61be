"""Pinned buffers leave too little memory to the host.

## What it does
Compares the largest size of torch's allocator of pinned buffers with the memory that the machine had available over
the steady steps. It is a finding where less than a tenth of the machine's memory was available, and would not have
been so without the pinned buffers.

## Why it is slow
Pinned pages can be neither swapped nor given back, and torch keeps freed buffers for later use, each rounded up to a
power of two. The system drops the files that it keeps in memory instead, so that the data set is read from the disk
again; then it swaps or kills.

## When it is fine
Where the rest of the machine needs no more.

## Example
```python
images = images.pin_memory()  # the whole data set
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=64, pin_memory=True, prefetch_factor=2)
```

## References
- [PyTorch, a guide on pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
- [earlyoom, which acts when 10% are left](https://github.com/rfjakob/earlyoom)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.memory_limit import FULL
from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare what is pinned with what the host lacks."""
    pinned = observation.memory.pinned_bytes
    left = observation.monitors.mean("memory_available_bytes") if observation.monitors is not None else None
    whole = observation.machine.get("memory_bytes")
    if pinned is None or left is None or not isinstance(whole, int):
        raise Abstain("pinned buffers, and the memory that was available")
    wanted = (1 - FULL) * whole
    if left >= wanted or left + pinned < wanted:
        return
    loader = step_loader(observation)
    pins = loader if loader is not None and loader.pin_memory else None
    ahead = f"; the loader pins {pins.prefetch_factor or 2} batches of each worker ahead" if pins else ""
    yield Symptom(
        evidence=f"{byte_size(pinned)} are pinned, and {byte_size(left)} of {byte_size(whole)} were available{ahead}",
        metric="memory.pinned_bytes",
        path=pins.path if pins else None,
        line=pins.line if pins else None,
        severity=Severity.WARNING,
    )


rule = Rule(
    code="pinned-memory-starves-host",
    title="Pinned buffers leave too little memory to the host",
    advice="Pin batches, not the data set; smaller batches, fewer of them ahead (prefetch_factor), fewer workers.",
    page=__doc__ or "",
    check=check,
)
