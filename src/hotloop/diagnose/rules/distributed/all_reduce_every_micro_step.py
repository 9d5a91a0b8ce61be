"""Gradients are reduced in each micro-step, seen as it runs: the lint rule of this name finds it in the source.

## What it does
Counts the backward passes of a step after which DDP adds up the gradients of all ranks. Where forward and backward come
several times before the optimizer's step, takes what the ranks wait for in all of them but one, as DDP measured it.

## Why it is slow
Each backward pass ends with an all-reduce of all gradients; the sums are needed once for each optimizer step.

## When it is fine
Where memory is short: under `no_sync` the gradients of a shard are kept whole. Communication that computing hides costs
nothing, and is not reported.

## Example
```python
for micro_batch in micro_batches:
    loss_fn(model(micro_batch)).backward()  # all-reduce each time
optimizer.step()
```
Use instead:
```python
with model.no_sync():
    for micro_batch in micro_batches[:-1]:
        loss_fn(model(micro_batch)).backward()
loss_fn(model(micro_batches[-1])).backward()
optimizer.step()
```

## References
- [PyTorch, DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.sampled_line import during, sampled_line
from hotloop.diagnose.price.cost import phase_cost
from hotloop.diagnose.price.facts import repeated_passes
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the reductions but one."""
    passes = repeated_passes(observation)
    num = passes * (observation.program.reduced or 0.0)
    if num < 2.0:
        return
    if Phase.COMMUNICATION not in observation.phases:
        raise Abstain("the time of reductions (DDP has not measured one yet)")
    cost = phase_cost(observation, Phase.COMMUNICATION).times((num - 1.0) / num)
    path, line = sampled_line(observation, during(Phase.BACKWARD.value))
    yield Symptom(
        evidence=f"gradients are reduced {num:.3g} times in a step of {passes} backward passes, and all but the last "
        f"take {cost.share:.0%} of the step ({duration(cost.seconds[0])})",
        metric="phases.communication.share",
        path=path,
        line=line,
        cost=cost,
        gain=cost.gain(),
    )


rule = Rule(
    code="all-reduce-every-micro-step",
    title="Gradients are reduced in each micro-step",
    advice="Put all but the last forward and backward under model.no_sync().",
    explains=frozenset({"communication-bound"}),
    page=__doc__ or "",
    check=check,
)
