"""Some ranks are slower than the others, and those wait for them.

## What it does
Takes from each rank's step what it waits for the others: what a span lasts before the last rank has come to it, where
all leave it together, and what DDP measured itself. The rank that works longest without that comes last, and with it
those that are nearer to it than to the others. The phase in which they are longer is named, and the line of code that
takes most of that. Where no waits are known, only what ranks spend on their data is compared.

## Why it is slow
Collectives end when the last rank has come: the slowest sets the pace of all.

## When it is fine
Where work is uneven by design and changes hands.

## Example
```python
sampler = DistributedSampler(dataset)  # long samples by chance all on one rank
```
Use instead:
```python
sampler = BalancedBatches(dataset.lengths, num_tokens=4096)  # about equal work for each
```

## References
- [PyTorch, Performance Tuning Guide, Load-balance workload in a distributed setting](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.cost import phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration
from hotloop.stats.late_ranks import late_ranks, named, told


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the ranks' own work."""
    late = late_ranks(observation.ranks)
    if late is None or late.excess_s <= 0:
        return
    whole = phase_cost(observation, *Phase)
    cost = whole.times(min(1.0, late.excess_s / whole.step_s))
    yield Symptom(
        evidence=f"{named(late)} last to the collectives, by {duration(late.excess_s)} a step: {told(late)}",
        metric=f"ranks.phases.{late.phase.value}",
        path=late.line.path if late.line else None,
        line=late.line.line if late.line else None,
        cost=cost,
        gain=cost.gain(),
    )


rule = Rule(
    code="straggler-rank",
    title="Some ranks are slower than the others",
    advice="Give the ranks equal work; look at the devices, cores and data of those that are named.",
    explains=frozenset({"communication-bound"}),
    made_by_neighbours=True,
    page=__doc__ or "",
    check=check,
)
