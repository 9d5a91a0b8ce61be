"""Several backward passes go through one graph.

## What it does
Watches which nodes of the graph each backward pass of a step goes through, and finds passes that go through nodes of
an earlier one and add to the gradients that it left. Takes the time of those nodes. Passes between which gradients
are read or zeroed, and those of `create_graph=True`, are left out.

## Why it is slow
The trunk that three losses share is gone through three times, where the sum of the losses needs one pass: gradients
are linear.

## When it is fine
Gradients of each loss that are looked at apart (they are read then).

## Example
```python
loss_a.backward(retain_graph=True)
loss_b.backward()
```
Use instead:
```python
(loss_a + loss_b).backward()
```

## References
- [PyTorch, torch.autograd.backward](https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.dataflow_lines import Spent, dataflow_cost, dataflow_of
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.quantities import average, duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Add up what passes went through again."""
    flow = dataflow_of(observation)
    again = sorted((one for one in flow.backwards if one.again_s), key=lambda one: -one.again_s)
    if not again:
        return
    first = again[0]
    cost = dataflow_cost(
        observation, flow, Spent(backward_s=sum(one.again_s for one in again) / flow.num_steps)
    )
    calls = sum(one.num for one in flow.backwards) / flow.num_steps
    yield Symptom(
        evidence=f"{average(calls, 'backward pass', 'backward passes')} a step; {cost.share:.0%} of the step "
        f"({duration(cost.seconds[0])}) goes through what an earlier one went through",
        path=first.path,
        line=first.line,
        cost=cost,
        gain=cost.gain(),
    )


rule = Rule(
    code="repeated-backward",
    title="Several backward passes go through one graph",
    advice="Add the losses up and call backward once: (a + b).backward().",
    page=__doc__ or "",
    check=check,
)
