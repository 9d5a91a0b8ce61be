"""Memory is nearly full.

## What it does
Compares the peak of the training process with what the machine, or the accelerator, has.

## Why it is slow
A full host swaps or kills; a full device makes the allocator give back and ask again, which waits for the device.

## When it is fine
A peak that is known and does not move. What it costs is not measured.

## Example
```python
loader = DataLoader(dataset, batch_size=512)
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=256)
```

## References
- [PyTorch, CUDA memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
- [earlyoom, which acts when 10% are left](https://github.com/rfjakob/earlyoom)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.memory_limit import FULL, memory_limit
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the peak with the limit."""
    peak, limit = observation.memory.peak_bytes, memory_limit(observation)
    if peak is None:
        raise Abstain("the peak of memory")
    if limit is None:
        raise Abstain("the size of memory")
    if peak >= FULL * limit:
        yield Symptom(
            evidence=f"the peak of {byte_size(peak)} is {peak / limit:.0%} of {byte_size(limit)}",
            metric="memory.peak_bytes",
            severity=Severity.WARNING,
        )


rule = Rule(
    code="near-memory-limit",
    title="Memory is nearly full",
    advice="Use a smaller micro-batch with accumulation, or recompute activations.",
    page=__doc__ or "",
    check=check,
)
