"""The step waits for other ranks.

## What it does
Takes the share of the step in collectives that no computation hides: what the program calls itself, and what DDP
measured of its own.

## Why it is slow
Gradients travel over a link that is slower than the backward, or all of them at its end.

## When it is fine
Below 5% of the step it is information, and so it is on a CPU that others use meanwhile: the ranks then wait for their
cores. A rank that waits for a slower one is `straggler-rank`.

## Example
```python
for micro_batch in micro_batches:
    loss_fn(model(micro_batch)).backward()  # all-reduce each time
```
Use instead:
```python
with model.no_sync():
    for micro_batch in micro_batches[:-1]:
        loss_fn(model(micro_batch)).backward()
loss_fn(model(micro_batches[-1])).backward()
```

## References
- [PyTorch, DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import MIDWAY, phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time of collectives."""
    cost = phase_cost(observation, Phase.COMMUNICATION)
    if observation.program.world_size < 2 and len(observation.ranks) < 2:
        return
    if Phase.COMMUNICATION not in observation.phases:
        raise Abstain("the time of collectives (they run inside the backward)")
    yield Symptom(
        evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) waits for other ranks",
        metric="phases.communication.share",
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
    )


rule = Rule(
    code="communication-bound",
    title="The step waits for communication",
    advice="Communicate less often (no_sync), less (compression), or beside the backward (buckets).",
    made_by_neighbours=True,
    page=__doc__ or "",
    check=check,
)
