"""The gradient of an input is computed, and nobody reads it.

## What it does
Follows the gradients that backward passes leave at tensors that require gradients and are no parameters. Takes the time
of the backward that led to them alone, and half of that of a product whose other gradient was needed, where the tensor
went before any operation read its gradient.

## Why it is slow
The first layer's backward computes the gradient of its input as well as that of its weight: for a convolution on large
pictures as much again.

## When it is fine
Where something that this rule cannot see reads them (C++ code). Hooks, and `torch.autograd.grad`, it sees.

## Example
```python
for x, y in loader:
    x.requires_grad_(True)  # left from a saliency map
    loss_fn(model(x), y).backward()
```
Use instead:
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
```

## References
- [PyTorch, Setting requires_grad](https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.dataflow_lines import Spent, dataflow_cost, dataflow_of, said_lines, spent_lines
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the lines whose backward leads to inputs."""
    flow = dataflow_of(observation)
    if flow.num_steps < 2:
        return
    num = flow.num_steps - 1  # what became of the last step's gradients is not known
    for one in spent_lines(flow, lambda group: Spent(backward_s=group.unread_s / num)):
        cost = dataflow_cost(observation, flow, one.spent)
        yield Symptom(
            evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) computes the gradient of what goes "
            f"in here{said_lines(one)}, a tensor with requires_grad that is no parameter, and nobody reads it",
            path=one.at.path,
            line=one.at.line,
            cost=cost,
            gain=cost.gain(),
        )


rule = Rule(
    code="input-gradient-unread",
    title="The gradient of an input is computed and nobody reads it",
    advice="Leave requires_grad off for the input, or pass x.detach().",
    page=__doc__ or "",
    check=check,
)
