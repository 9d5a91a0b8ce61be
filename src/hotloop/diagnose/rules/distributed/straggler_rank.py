"""One rank is slower than the others, and they wait for it.

## What it does
Compares what the ranks spend on their data, where no rank waits for another one; and, where each rank's wait for the
others is known, their steps without it: the slowest rank with the median of the others.

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

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from hotloop.diagnose.price.cost import phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase, RankObservation
from hotloop.model.quantities import duration

_LOCAL = (Phase.DATA, Phase.TRANSFER)
"""Phases in which no rank waits for another one; the others may hold hidden waits (buffers, gradients, norms)."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the ranks' own work."""
    ranks = [rank for rank in observation.ranks if rank.step is not None and rank.rank is not None]
    if len({rank.rank for rank in ranks}) < 2:
        return
    found = [_by_local_phases(ranks)]
    if all(Phase.COMMUNICATION in rank.phases for rank in ranks):
        found.append(_by_whole_steps(ranks))
    slowest, excess, says = max(found, key=lambda one: one[1])
    whole = phase_cost(observation, *Phase)
    cost = whole.times(min(1.0, excess / whole.step_s))
    yield Symptom(
        evidence=f"rank {slowest} {says}", metric="ranks.step.median_s", cost=cost, gain=cost.gain()
    )


def _by_local_phases(ranks: Sequence[RankObservation]) -> tuple[int | None, float, str]:
    """Return the rank with the most of what no rank waits in, and how much more than the others that is."""
    spent = {rank.rank: sum(_spent_s(rank, phase) for phase in _LOCAL) for rank in ranks}
    slowest, usual = _slowest(spent)
    says = f"spends {duration(spent[slowest])} a step on its data, the others {duration(usual)}: they wait for it"
    return slowest, spent[slowest] - usual, says


def _by_whole_steps(ranks: Sequence[RankObservation]) -> tuple[int | None, float, str]:
    """Return the rank whose step without its wait is the longest, and how much longer than the others' that is."""
    own = {rank.rank: _own_s(rank) for rank in ranks}
    slowest, usual = _slowest(own)
    says = f"works {duration(own[slowest])} a step, the others {duration(usual)}"
    return slowest, own[slowest] - usual, says


def _slowest(spent: Mapping[int | None, float]) -> tuple[int | None, float]:
    """Return the rank that spends the most, and the median of the others."""
    slowest = max(spent, key=lambda rank: spent[rank])
    return slowest, median(each for rank, each in spent.items() if rank != slowest)


def _spent_s(rank: RankObservation, phase: Phase) -> float:
    assert rank.step is not None
    return rank.step.whole_s * rank.phases[phase].share if phase in rank.phases else 0.0


def _own_s(rank: RankObservation) -> float:
    assert rank.step is not None
    return rank.step.whole_s * (1.0 - rank.phases[Phase.COMMUNICATION].share)


rule = Rule(
    code="straggler-rank",
    title="One rank is slower than the others",
    advice="Give the ranks equal work; look at that rank's device, cores and data.",
    explains=frozenset({"communication-bound"}),
    made_by_neighbours=True,
    page=__doc__ or "",
    check=check,
)
