"""The step waits for data.

## What it does
Takes the share of the step in which the training loop waits for its next batch. Where the reason is known, too
(no workers, too few, no free core), that finding is given in its place.

## Why it is slow
The device, or the cores that compute, do nothing meanwhile.

## When it is fine
Where the data cannot come faster: a stream, a simulator. A wait below 5% of the step is information.

## Example
```python
for x, y in loader:  # 66% of the step
    train(x, y)
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4)
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.choosing_samples import making_cost
from hotloop.diagnose.price.cost import phase_cost
from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.handing_over import BATCH_S
from hotloop.diagnose.rules.data.loader_slower_than_training import MIN_SHARE_TO_REPORT
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the wait for data."""
    cost = phase_cost(observation, Phase.DATA, bursts=True)
    if Phase.DATA not in observation.phases:
        raise Abstain("a DataLoader in the step")
    loader = step_loader(observation)
    if loader is not None and not loader.num_workers and not loader.iterable and _made_slowly(observation):
        return  # `loader-in-training-process` tells what workers bring, and that they may bring nothing
    perfect, allowed = observation.ceilings.perfect_input if observation.ceilings else None, cost.gain()
    yield Symptom(
        evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) is waiting for the next batch",
        metric="phases.data.share",
        path=loader.path if loader else None,
        line=loader.line if loader else None,
        cost=cost,
        # A ceiling above what the wait allows holds something else: a batch that stays in the processor's cache.
        gain=perfect if perfect is not None and perfect.ratio <= allowed.high else allowed,
        severity=Severity.INFO
        if loader and loader.num_workers and cost.share < MIN_SHARE_TO_REPORT
        else None,
    )


def _made_slowly(observation: Observation) -> bool:
    return making_cost(observation).seconds[0] >= BATCH_S


rule = Rule(
    code="input-bound",
    title="The step waits for data",
    advice="Find what is slow in loading a sample; decode once and cache, or load beside training.",
    optimization="loader_workers",
    fixed_by_it=False,
    page=__doc__ or "",
    check=check,
)
