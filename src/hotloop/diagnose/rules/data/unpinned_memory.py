"""Batches for an accelerator lie in pageable memory.

## What it does
Finds a loader without `pin_memory=True` that feeds a model on an accelerator, and takes the time of the copies.

## Why it is slow
A copy from pageable memory goes through a buffer of the driver and cannot run beside computation.

## When it is fine
Batches of a few kilobytes; below 5% of the step it is information.

## Example
```python
loader = DataLoader(dataset, batch_size=64, num_workers=4)
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
x = x.to("cuda", non_blocking=True)
```

## References
- [PyTorch, pinned memory and non-blocking copies](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.cost import MIDWAY, phase_cost
from hotloop.diagnose.price.facts import on_cpu, step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time of copies from a loader that does not pin."""
    loader = step_loader(observation)
    if on_cpu(observation) or loader is None or loader.pin_memory:
        return
    cost = phase_cost(observation, Phase.TRANSFER)
    yield Symptom(
        evidence=f"pin_memory=False, and {cost.share:.0%} of the step is copying to the device",
        metric="phases.transfer.share",
        path=loader.path,
        line=loader.line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
    )


rule = Rule(
    code="unpinned-memory",
    title="Batches are copied from pageable memory",
    advice="Set pin_memory=True and copy with non_blocking=True.",
    optimization="pinned_memory",
    explains=frozenset({"transfer-bound"}),
    page=__doc__ or "",
    check=check,
)
