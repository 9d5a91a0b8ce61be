"""All ranks wait for one another in every step.

## What it does
Finds `torch.distributed.barrier()` in code that runs in each training step.

## Why it is slow
The backward pass joins the ranks already; a barrier adds a round trip, and makes the host wait for the device
on each.

## When it is fine
Around files that one rank writes and others read, now and then.

## Example
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    dist.barrier()
```
Use instead:
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
```

## References
- [PyTorch, torch.distributed](https://docs.pytorch.org/docs/stable/distributed.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find barriers in the step."""
    if program.names.call(call) == "torch.distributed.barrier" and program.steps.in_step_loop(call):
        yield Hit(call, "a barrier in each step")


rule = Rule(
    code="barrier-in-step",
    title="All ranks wait for one another in each step",
    severity=Severity.WARNING,
    advice="Remove it; the gradients' all-reduce joins the ranks already.",
    page=__doc__,
    words=("barrier",),
    visits=(Visit(cst.Call, check),),
)
