"""The loader has a worker on every core, and the step still waits.

## What it does
Finds a loader with at least as many workers as each training process has cores, whose batches the step waits for.

## Why it is slow
More workers have nowhere to run: the work itself is too much, in decoding, augmenting or reading.

## When it is fine
Below 10% of the step it is information: workers and training share the cores. The fix is in the data, not in a setting.

## Example
```python
def __getitem__(self, index):
    return augment(decode(self.paths[index]))  # the same decoding in every epoch
```
Use instead:
```python
def __getitem__(self, index):
    return augment(self.decoded[index])
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.choosing_samples import awaiting_cost
from hotloop.diagnose.price.facts import cores_per_process, step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation

MIN_SHARE_TO_REPORT = 0.1
"""Share of the step: a cheap data set whose two workers shared two cores with the training took 8%."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the wait for a loader that has all cores."""
    cost = awaiting_cost(observation)
    loader = step_loader(observation)
    if loader is None or not loader.num_workers:
        return
    cores = cores_per_process(observation)
    if loader.num_workers < cores:
        return
    yield Symptom(
        evidence=(
            f"num_workers={loader.num_workers} on {cores} cores, and {cost.share:.0%} of the step still waits for them"
        ),
        metric="phases.data.share",
        path=loader.path,
        line=loader.line,
        cost=cost,
        gain=cost.gain(),
        severity=Severity.INFO if cost.share < MIN_SHARE_TO_REPORT else None,
    )


rule = Rule(
    code="loader-slower-than-training",
    title="The loader is slower than training, even with a worker on every core",
    advice="Make a sample cheaper: decode once and cache, read sequentially, augment on the device.",
    explains=frozenset({"input-bound"}),
    page=__doc__ or "",
    check=check,
)
