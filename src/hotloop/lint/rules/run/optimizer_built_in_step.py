"""The optimizer is made anew in every step.

## What it does
Finds the construction of an optimizer of `torch.optim` in code that runs in each training step.

## Why it is slow
Its state is allocated again each time, and momentum and second moments never build up: the training needs
more steps.

## When it is fine
An inner problem that starts afresh (meta-learning), where the construction stands before an inner loop of
steps.

## Example
```python
for x, y in loader:
    optimizer = torch.optim.Adam(model.parameters())
    loss_fn(model(x), y).backward()
    optimizer.step()
```
Use instead:
```python
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
```

## References
- [PyTorch, torch.optim](https://docs.pytorch.org/docs/stable/optim.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find optimizers built in the step."""
    if program.values.kind(call) is not Kind.OPTIMIZER or program.file.enclosing(call, cst.If) is not None:
        return
    loop = program.steps.loop_of(call)
    if loop is not None and program.steps.in_step_loop(call):
        yield Hit(call, f"{program.names.call(call)} is built in each step")


rule = Rule(
    code="optimizer-built-in-step",
    title="The optimizer is made anew in each step",
    severity=Severity.WARNING,
    advice="Build it once, before the loop.",
    holds_its_cost=True,
    page=__doc__,
    words=("optim",),
    visits=(Visit(cst.Call, check),),
)
