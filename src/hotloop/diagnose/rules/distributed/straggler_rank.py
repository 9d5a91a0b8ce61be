"""One rank is slower than the others, and they wait for it.

## What it does
Takes each rank's step without its wait for others, and compares the slowest with the median.

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
from statistics import median

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.cost import phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase, RankObservation


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the ranks' own work."""
    ranks = [rank for rank in observation.ranks if rank.step is not None and rank.rank is not None]
    if len(ranks) < 2:
        return
    if not all(Phase.COMMUNICATION in rank.phases for rank in ranks):
        raise Abstain("each rank's wait for the others (collectives run inside the backward)")
    own = {rank.rank: _own_s(rank) for rank in ranks}
    slowest = max(own, key=lambda rank: own[rank])
    excess = own[slowest] - median(own.values())
    whole = phase_cost(observation, *Phase)
    yield Symptom(
        evidence=f"rank {slowest} works {own[slowest] * 1e3:.3g} ms a step, the median rank "
        f"{median(own.values()) * 1e3:.3g} ms",
        metric="ranks.step.median_s",
        cost=whole.times(min(1.0, excess / whole.step_s)),
        gain=whole.times(min(1.0, excess / whole.step_s)).gain(),
    )


def _own_s(rank: RankObservation) -> float:
    assert rank.step is not None
    return rank.step.median_s * (1.0 - rank.phases[Phase.COMMUNICATION].share)


rule = Rule(
    code="straggler-rank",
    title="One rank is slower than the others",
    advice="Give the ranks equal work; look at that rank's device, cores and data.",
    optimization="balanced_batches",
    page=__doc__ or "",
    check=check,
)
