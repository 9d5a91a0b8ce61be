"""Gradients are computed for parameters that no optimizer holds.

## What it does
Follows which parameters each operation's result was computed from, and takes the time of the backward that leads to
parameters in no optimizer alone, where nobody reads their gradients. Names the outermost line that calls nothing else:
the call of the teacher, of the frozen trunk.

## Why it is slow
Such a backward is work for nothing; the forward before it keeps every activation for it.

## When it is fine
Parameters that something else updates, which this rule cannot see (gradients that C++ code reads).

## Example
```python
target = teacher(x)
loss = distance(student(x), target)
```
Use instead:
```python
with torch.no_grad():
    target = teacher(x)
loss = distance(student(x), target)
```

## References
- [PyTorch, Locally disabling gradient computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disable-grad-doc)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.dataflow_lines import Spent, dataflow_cost, dataflow_of, said_lines, spent_lines
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.memory.evaluation_with_gradients import USUAL
from hotloop.model.dataflow import OperationGroup
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

MOSTLY = 0.4
"""Of a group's backward: of a product half of it is for the parameter, half for its input."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the lines whose backward is for nobody."""
    flow = dataflow_of(observation)
    if observation.program.distributed == "fsdp":
        raise Abstain("parameters that optimizers hold as they are (FSDP's are parts of others)")
    if not observation.program.optimizers or flow.num_steps < 2:
        return
    num = flow.num_steps - 1  # what became of the last step's gradients is not known

    def measure(group: OperationGroup) -> Spent:
        needed = group.backward_s * num / flow.num_steps
        wasted = group.unheld_s >= MOSTLY * needed
        return Spent(
            forward_s=USUAL * group.unheld_graph_s / num,
            backward_s=group.unheld_s / num,
            beside_s=0.0 if wasted else needed / num,
        )

    for one in spent_lines(flow, measure):
        cost = dataflow_cost(observation, flow, one.spent)
        yield Symptom(
            evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) is the backward of what is called "
            f"here{said_lines(one)}, for parameters that no optimizer holds and gradients that nobody reads",
            path=one.at.path,
            line=one.at.line,
            cost=cost,
            gain=cost.gain(),
        )


rule = Rule(
    code="gradients-without-optimizer",
    title="Gradients are computed for parameters that no optimizer holds",
    advice="Call it under torch.no_grad(); where gradients must pass through it, requires_grad_(False) for its "
    "parameters.",
    page=__doc__ or "",
    check=check,
)
