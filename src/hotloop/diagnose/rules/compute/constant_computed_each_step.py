"""The same is computed anew in each step, from what never changes.

## What it does
Watches every operation of a few steps, below autograd, and finds those that compute in each step what they computed in
the step before: a table of positions, a mask, a filter bank, a normalized adjacency matrix, the output of a frozen
model on a fixed batch. What depends on a parameter that is trained, on the batch or on chance is never the same.

## Why it is slow
It is work, often of many small operations, that one tensor kept in memory replaces.

## When it is fine
What would take too much memory to keep. A program that trains on one made-up batch (a benchmark) does everything with
its input anew.

## Example
```python
def forward(self, x):
    return x + sinusoids(x.shape[1], self.dim)
```
Use instead:
```python
def __init__(self, dim, longest):
    self.register_buffer("table", sinusoids(longest, dim))

def forward(self, x):
    return x + self.table[: x.shape[1]]
```

## References
- [PyTorch, torch.nn.Module.register_buffer](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.dataflow_lines import (
    PURE,
    Spent,
    dataflow_cost,
    dataflow_of,
    said_lines,
    spent_lines,
)
from hotloop.diagnose.price.facts import trains
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.dataflow import OperationGroup
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the lines whose operations computed the same in the step before."""
    flow = dataflow_of(observation)
    if not trains(observation) or flow.num_steps < 2:
        return
    num = flow.num_steps

    def measure(group: OperationGroup) -> Spent:
        other = group.new_s + group.first_s + group.repeated_s
        alone = group.constant_s and other <= PURE * group.constant_s
        same = (group.constant_s + (group.neutral_s if alone else 0.0)) / num
        loading = group.part == "loading"
        return Spent(
            forward_s=0.0 if loading else same, loading_s=same if loading else 0.0, beside_s=other / num
        )

    for one in spent_lines(flow, measure):
        cost = dataflow_cost(observation, flow, one.spent)
        yield Symptom(
            evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) computes here{said_lines(one)} what "
            "was the same in the step before",
            path=one.at.path,
            line=one.at.line,
            cost=cost,
            gain=cost.gain(),
        )


rule = Rule(
    code="constant-computed-each-step",
    title="The same is computed anew in each step",
    advice="Compute it once, before the loop, and keep it: a buffer of the module (register_buffer), or a variable.",
    page=__doc__ or "",
    check=check,
)
