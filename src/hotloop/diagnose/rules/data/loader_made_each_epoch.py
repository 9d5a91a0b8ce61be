"""A loader with workers is made anew in every epoch.

## What it does
Counts how often a DataLoader is made at one line with the same settings, and how often it is iterated. Takes the time
between epochs where every epoch makes one: the start of its workers, and the wait for their first batch.

## Why it is slow
A new loader starts new processes, each of which imports what it needs and gets its copy of the data set.
`persistent_workers=True` keeps the workers of a loader, and a loader that is thrown away has none to keep.

## When it is fine
Long epochs; a data set or a batch size that changes from epoch to epoch.

## Example
```python
for epoch in range(100):
    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4)
    for x, y in loader:
        train(x, y)
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4, persistent_workers=True)
for epoch in range(100):
    for x, y in loader:
        train(x, y)
```

## References
- [PyTorch, torch.utils.data, `persistent_workers`](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.boundaries import boundary_cost
from hotloop.model.observation import Observation
from hotloop.model.program import LoaderFacts


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time in which workers start."""
    loader = step_loader(observation)
    if loader is None or not loader.num_workers or not made_each_epoch(loader):
        return
    cost = boundary_cost(observation, loader)
    yield Symptom(
        evidence=f"made {loader.num_made} times for {loader.num_iterators} epochs, and {loader.num_workers} workers "
        f"start each time, which takes {cost.share:.0%} of the loop",
        metric="run.parts.epoch_boundary_s",
        path=loader.path,
        line=loader.line,
        cost=cost,
        gain=cost.gain(),
    )


def made_each_epoch(loader: LoaderFacts) -> bool:
    """Whether it was made as often as it was iterated; once more where the next one is being made."""
    return loader.num_made > 1 and loader.num_made >= loader.num_iterators


rule = Rule(
    code="loader-made-each-epoch",
    title="A loader is made anew in every epoch",
    advice="Make it once, before the loop over epochs, with persistent_workers=True.",
    explains=frozenset({"short-epochs"}),
    page=__doc__ or "",
    check=check,
)
