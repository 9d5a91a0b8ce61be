"""The loader has workers, the step still waits, and cores are free for more.

## What it does
Finds a loader with fewer workers than each training process has cores, whose batches the step waits for.

## Why it is slow
Workers make batches side by side; too few make them slower than the loop takes them.

## When it is fine
Loading that is limited by the disk or the network, not by cores: more workers then change nothing.
What the training process does itself, choosing samples (`slow-sampler`) and unpacking batches, is not counted.

## Example
```python
loader = DataLoader(dataset, batch_size=64, num_workers=1)
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=64, num_workers=8)
```

## References
- [PyTorch issue 23048, choosing the number of workers](https://github.com/pytorch/pytorch/issues/23048)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.choosing_samples import awaiting_cost
from hotloop.diagnose.price.facts import cores_per_process, step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the wait for a loader that has fewer workers than cores."""
    cost = awaiting_cost(observation)
    loader = step_loader(observation)
    if loader is None or not loader.num_workers:
        return
    cores = cores_per_process(observation)
    if loader.num_workers >= cores:
        return
    yield Symptom(
        evidence=(
            f"num_workers={loader.num_workers} on {cores} cores, and {cost.share:.0%} of the step still waits for them"
        ),
        metric="phases.data.share",
        path=loader.path,
        line=loader.line,
        cost=cost,
        # In a loop that waits, the loader's rate sets the pace and grows with its workers.
        gain=cost.gain(expected=1.0 - loader.num_workers / cores),
    )


rule = Rule(
    code="too-few-workers",
    title="Too few workers make the batches",
    advice="Give the loader more workers.",
    optimization="loader_workers",
    explains=frozenset({"input-bound"}),
    page=__doc__ or "",
    check=check,
)
