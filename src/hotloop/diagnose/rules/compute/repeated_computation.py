"""The same is computed again within a step, from the same values.

## What it does
Watches every operation of a few steps, below autograd, and gives each value the number of the operation and of the
values that it was computed from. An operation whose number was there before in the step computes what is there
already: a module called again on the same input, a weight that a parametrization makes at every call, an expression
written twice. Names the outermost line under which everything was computed before. Its backward counts, too: what is
computed once has one backward. Random operations and copies are left out.

## Why it is slow
A decoder that projects the encoder's output at each of 24 time steps does that work 24 times, forward and backward.

## When it is fine
Recomputation that saves memory on purpose (`torch.utils.checkpoint` is not counted).

## Example
```python
for token in target.unbind(1):
    keys = self.key(memory)
    state = self.cell(token, attend(state, keys))
```
Use instead:
```python
keys = self.key(memory)
for token in target.unbind(1):
    state = self.cell(token, attend(state, keys))
```

## References
- [PyTorch, torch.nn.utils.parametrize.cached](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.cached.html)
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
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.dataflow import OperationGroup
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

CACHED = "Call the model under torch.nn.utils.parametrize.cached(): each parametrized weight is then made once in it."


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the lines whose operations were computed before in the step."""
    flow = dataflow_of(observation)
    num = flow.num_steps

    def measure(group: OperationGroup) -> Spent:
        counted = group.first_s + group.repeated_s
        also = (
            group.neutral_s * group.repeated_s / counted if counted and group.new_s <= PURE * counted else 0.0
        )
        again = (group.repeated_s + also) / num
        loading = group.part == "loading"
        return Spent(
            forward_s=0.0 if loading else again,
            backward_s=group.again_backward_s / num,
            loading_s=again if loading else 0.0,
            beside_s=(group.new_s + group.constant_s) / num,
        )

    for one in spent_lines(flow, measure):
        cost = dataflow_cost(observation, flow, one.spent)
        made = sum(group.repeated_s for group in one.groups if group.parametrized)
        parametrized = made >= 0.5 * sum(group.repeated_s for group in one.groups)
        yield Symptom(
            evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) computes here{said_lines(one)} "
            + ("parametrized weights that were made before" if parametrized else "what was computed before")
            + " in the same step, from the same values"
            + (", backward included" if one.spent.backward_s else ""),
            path=one.at.path,
            line=one.at.line,
            cost=cost,
            gain=cost.gain(),
            advice=CACHED if parametrized else None,
        )


rule = Rule(
    code="repeated-computation",
    title="The same is computed again within a step",
    advice="Compute it once a step and pass the result on: out of the loop, or kept by who calls it.",
    page=__doc__ or "",
    check=check,
)
