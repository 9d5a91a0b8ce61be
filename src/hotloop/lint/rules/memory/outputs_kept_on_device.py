"""The outputs of all batches are gathered on the device.

## What it does
Finds `outputs.append(model_output)` in a training loop, where the value still has its graph and its list is
not emptied in the loop.

## Why it is slow
Each entry holds the graph and the activations of its step; the list grows until the device is full.

## When it is fine
The gathered outputs are differentiated together after the loop (contrastive batches); the rule looks for a
backward call outside the loop.

## Example
```python
for x, y in loader:
    out = model(x)
    loss_fn(out, y).backward()
    outputs.append(out)
```
Use instead:
```python
    outputs.append(out.detach().cpu())
```

## References
- [PyTorch, FAQ: my model reports out of memory](https://docs.pytorch.org/docs/stable/notes/faq.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method, receiver
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find outputs with a graph that a list keeps."""
    owner = receiver(call)
    loop = program.steps.loop_of(call)
    if (
        method(call) != "append"
        or owner is None
        or len(call.args) != 1
        or loop is None
        or program.without_grad(call)
    ):
        return
    gathered, value = dotted(owner), call.args[0].value
    if gathered is None or not isinstance(value, cst.Name) or not _is_output(program, value):
        return
    made_here = any(dotted(t.target) == gathered for t in program.file.under(loop.body, cst.AssignTarget))
    ends_outside = all(program.file.inside(c, loop) for c in program.steps.backward_calls)
    emptied = any(_empties(c, gathered) for c in program.file.under(loop.body, cst.Call))
    if not made_here and ends_outside and not emptied:
        yield Hit(call, f"{gathered} keeps {value.value} and its graph for each step")


def _is_output(program: Program, value: cst.Name) -> bool:
    """Whether the name was last assigned the result of calling a module."""
    if program.values.kind(value) not in {Kind.TENSOR, Kind.TENSORS}:
        return False
    here = program.file.number(value)
    function = program.file.enclosing(value, cst.FunctionDef)
    scope = function if function is not None else program.file.module
    made = [a for a in program.file.under(scope, cst.Assign) if dotted(a.targets[0].target) == value.value]
    before = [a for a in made if program.file.number(a) < here]
    return (
        bool(before)
        and isinstance(before[-1].value, cst.Call)
        and program.values.kind(before[-1].value.func) is Kind.MODULE
    )


def _empties(call: cst.Call, gathered: str) -> bool:
    owner = receiver(call)
    return method(call) in {"clear", "pop", "popleft"} and owner is not None and dotted(owner) == gathered


rule = Rule(
    code="outputs-kept-on-device",
    title="A list keeps the outputs and graphs of all steps",
    severity=Severity.WARNING,
    advice="Append out.detach(), and move it to the host if the list is long.",
    page=__doc__,
    words=("append",),
    visits=(Visit(cst.Call, check),),
)
