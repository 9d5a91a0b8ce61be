"""New tensors are made on the host in every step, line by line.

## What it does
Adds up, for each line of the program, the time that a step spends in making tensors: `torch.tensor`, `torch.zeros`,
`torch.arange`, `torch.from_numpy` and their like. Making batches inside a DataLoader is not counted here.

## Why it is slow
A list of Python numbers is converted one by one; memory is allocated and filled anew; for a device it is copied, too.

## When it is fine
Values that are new in each step and small. Below 5% of the step it is information.

## Example
```python
for inputs, labels in loader:
    weights = torch.tensor(class_weights)
```
Use instead:
```python
weights = torch.tensor(class_weights)
for inputs, labels in loader:
    ...
```

## References
- [PyTorch, Performance Tuning Guide, Create tensors directly on the target device](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.call_costs import lines_of
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take each line that makes tensors."""
    for line in lines_of(observation, "create"):
        yield Symptom(
            evidence=f"{line.calls} takes {duration(line.cost.seconds[0])}, {line.cost.share:.0%} of the step",
            path=line.path,
            line=line.line,
            cost=line.cost,
            gain=line.cost.gain(),
        )


rule = Rule(
    code="tensor-creation-in-step",
    title="The step makes new tensors on the host",
    advice="Make the tensor once before the loop, on its device, and fill it in place where it changes.",
    page=__doc__ or "",
    check=check,
)
