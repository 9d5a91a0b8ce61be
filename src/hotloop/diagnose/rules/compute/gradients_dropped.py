"""Gradients are computed and dropped before anybody reads them.

## What it does
Follows the gradients that each backward pass leaves at the parameters of the optimizers, and finds those that were
dropped, or set to zero, before any operation read them. Takes the time of the backward that led to them alone, and half
of that of a product whose other gradient was needed.

## Why it is slow
The loss of a GAN's discriminator that goes on through the generator, because the samples were not detached, costs the
generator's whole backward; the generator's loss computes gradients of the discriminator's weights, which its own
`zero_grad()` throws away.

## When it is fine
Never: what is dropped was for nothing.

## Example
```python
fake = generator(noise)
loss = criterion(discriminator(fake), zeros)
loss.backward()
optimizer_d.step()
```
Use instead:
```python
fake = generator(noise)
loss = criterion(discriminator(fake.detach()), zeros)
loss.backward()
optimizer_d.step()
```

## References
- [PyTorch, torch.Tensor.detach](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html)
- [PyTorch, Setting requires_grad](https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.dataflow_lines import Spent, dataflow_cost, dataflow_of, said_lines, spent_lines
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.compute.gradients_without_optimizer import MOSTLY
from hotloop.model.dataflow import OperationGroup
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

WHOLLY = 0.75
"""Of a group's backward: above, all of it was dropped; below, what the weights needed of it."""
FROZEN = (
    "Set requires_grad_(False) on these parameters while the other part is trained, and back afterwards: gradients "
    "then pass through without theirs being computed."
)


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the lines whose gradients were dropped."""
    flow = dataflow_of(observation)
    if flow.num_steps < 2:
        return
    num = flow.num_steps - 1  # what became of the last step's gradients is not known

    def measure(group: OperationGroup) -> Spent:
        needed = group.backward_s * num / flow.num_steps
        wasted = group.dropped_s >= MOSTLY * needed
        return Spent(backward_s=group.dropped_s / num, beside_s=0.0 if wasted else needed / num)

    for one in spent_lines(flow, measure):
        cost = dataflow_cost(observation, flow, one.spent)
        backward = sum(group.backward_s for group in one.groups) * num / flow.num_steps
        partly = sum(group.dropped_s for group in one.groups) < WHOLLY * backward
        yield Symptom(
            evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) computes gradients for what is "
            f"called here{said_lines(one)}, and they are dropped before anybody reads them",
            path=one.at.path,
            line=one.at.line,
            cost=cost,
            gain=cost.gain(),
            advice=FROZEN if partly else None,
        )


rule = Rule(
    code="gradients-dropped",
    title="Gradients are computed and dropped unread",
    advice="Detach what this loss is not for (output.detach()), or compute it under torch.no_grad().",
    page=__doc__ or "",
    check=check,
)
