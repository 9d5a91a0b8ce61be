"""The garbage collector runs in every step.

## What it does
Finds `gc.collect()` in code that runs in each training step.

## Why it is slow
A full collection looks at every Python object of the process: tens to hundreds of milliseconds once torch and
a few libraries are imported.

## When it is fine
Once per epoch, or when a known reference cycle holds device memory.

## Example
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    gc.collect()
```
Use instead:
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
```

## References
- [Python, gc](https://docs.python.org/3/library/gc.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find full collections in the step."""
    if program.names.call(call) == "gc.collect" and program.steps.runs_each_step(call):
        statement = program.file.parent(call)
        edits = (Edit(statement, None),) if isinstance(statement, cst.Expr) else ()
        yield Hit(call, "gc.collect() in each step", edits=edits)


rule = Rule(
    code="garbage-collected-in-step",
    title="The garbage collector runs in each step",
    severity=Severity.WARNING,
    advice="Remove it, or collect once per epoch.",
    fix=Safety.UNSAFE,
    holds_its_cost=True,
    page=__doc__,
    words=("gc.collect", "collect"),
    visits=(Visit(cst.Call, check),),
)
