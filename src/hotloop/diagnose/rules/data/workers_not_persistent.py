"""Workers are started anew in every epoch, and training waits for it.

## What it does
Takes the time between epochs of a loader that has workers without `persistent_workers=True`: starting them, and what
the first step after it takes more than a usual one.

## Why it is slow
Every epoch ends all worker processes and starts others: tens of milliseconds each by fork, seconds by spawn, and what
the data set caches in them is lost.

## When it is fine
Long epochs. A data set that is told the epoch (`set_epoch`) would not hear of it in living workers.

## Example
```python
loader = DataLoader(dataset, batch_size=64, num_workers=4)
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)
```

## References
- [PyTorch, torch.utils.data, `persistent_workers`](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.boundaries import boundary_cost
from hotloop.diagnose.rules.data.loader_made_each_epoch import made_each_epoch
from hotloop.model.observation import Observation


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time in which workers start."""
    loader = step_loader(observation)
    if loader is None or not loader.num_workers or loader.persistent_workers or made_each_epoch(loader):
        return
    cost = boundary_cost(observation, loader)
    yield Symptom(
        evidence=(
            f"{loader.num_workers} workers are started every {observation.epoch_steps} steps "
            f"({loader.num_iterators} times), which takes {cost.share:.0%} of the loop"
        ),
        metric="run.parts.epoch_boundary_s",
        path=loader.path,
        line=loader.line,
        cost=cost,
        gain=cost.gain(),
    )


rule = Rule(
    code="workers-not-persistent",
    title="Workers are started anew in every epoch",
    advice="Set persistent_workers=True.",
    optimization="persistent_workers",
    explains=frozenset({"short-epochs"}),
    page=__doc__ or "",
    check=check,
)
