"""The whole evaluation runs in every step.

## What it does
Finds a call, in a training loop and outside any branch, of a function of the same file that switches a model
to `eval()` and loops over data.

## Why it is slow
A step of milliseconds is followed by a pass over the whole validation set.

## When it is fine
Full-batch training (graph networks), where an evaluation costs about a step; loops over epochs are left out.

## Example
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    accuracy = evaluate(model, val_loader)
```
Use instead:
```python
    if step % 1000 == 0:
        accuracy = evaluate(model, val_loader)
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find evaluations in each turn of a step loop."""
    callee = program.steps.callee(call)
    loop = program.steps.loop_of(call)
    if callee is None or loop is None or not _evaluates(program, callee):
        return
    branch = program.file.enclosing(call, cst.If, cst.For, cst.While)
    head = [loop.target, loop.iter] if isinstance(loop, cst.For) else [loop.test]
    over_epochs = any("epoch" in program.file.module.code_for_node(part).lower() for part in head)
    if branch is loop and not over_epochs and program.steps.in_step_loop(call):
        yield Hit(call, f"{callee.name.value} goes over its data in each step")


def _evaluates(program: Program, function: cst.FunctionDef) -> bool:
    if any(program.file.inside(c, function) for c in program.steps.backward_calls):
        return False
    switches = any(method(c) == "eval" and not c.args for c in program.file.under(function, cst.Call))
    return switches and bool(program.file.under(function, cst.For))


rule = Rule(
    code="evaluation-in-step",
    title="The whole evaluation runs in each step",
    severity=Severity.WARNING,
    advice="Evaluate every N steps or once per epoch.",
    page=__doc__,
    words=(".eval()",),
    visits=(Visit(cst.Call, check),),
)
