"""Epochs are so short that what happens between them counts.

## What it does
Takes the time between epochs, whatever the loader's settings.

## Why it is slow
The end of an epoch empties the loader's queues, shuffles anew and starts again; with few steps in between, that is paid
often.

## When it is fine
Where an epoch takes long against it: below 5% it is information.

## Example
```python
for epoch in range(10000):
    for x, y in loader:  # 12 batches
        train(x, y)
```
Use instead:
```python
sampler = RandomSampler(dataset, num_samples=1000 * batch_size)  # with replacement, or a sampler that repeats
for x, y in DataLoader(dataset, batch_size=batch_size, sampler=sampler):
    train(x, y)
```

## References
- [PyTorch, torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.boundaries import boundary_cost
from hotloop.model.observation import Observation


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time between epochs."""
    loader = step_loader(observation)
    if loader is None:
        return
    cost = boundary_cost(observation, loader)
    yield Symptom(
        evidence=f"an epoch has {observation.epoch_steps} steps, and {cost.share:.0%} of the loop is between epochs",
        metric="run.parts.epoch_boundary_s",
        path=loader.path,
        line=loader.line,
        cost=cost,
        gain=cost.gain(),
    )


rule = Rule(
    code="short-epochs",
    title="Epochs are short against what happens between them",
    advice="Let one epoch go over the data several times.",
    page=__doc__ or "",
    check=check,
)
