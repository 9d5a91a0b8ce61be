"""A running total keeps the graph of every step.

## What it does
Finds `total += loss` and `losses.append(loss)` in a training loop, where `loss` is what `backward()` was
called on and the total is never differentiated itself.

## Why it is slow
The total is a tensor with a history: each step's graph hangs on the last one's. Memory grows with every step,
until the program slows down or dies.

## When it is fine
The total is differentiated later; the rule looks for that.

## Example
```python
loss.backward()
total += loss
```
Use instead:
```python
loss.backward()
total += loss.detach()
```

## References
- [PyTorch, FAQ: my model reports out of memory](https://docs.pytorch.org/docs/stable/notes/faq.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method, receiver
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety


def check_sum(program: Program, add: cst.AugAssign) -> Iterator[Hit]:
    """Find sums of losses."""
    total = dotted(add.target)
    if not isinstance(add.operator, cst.AddAssign) or total is None:
        return
    loss = _scaled(add.value)
    if loss is not None and _kept(program, add, loss, total):
        yield _hit(loss, f"{total} keeps the graph of {dotted(loss)} of each step")


def check_append(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find lists of losses."""
    owner = receiver(call)
    if method(call) != "append" or len(call.args) != 1 or owner is None:
        return
    gathered, loss = dotted(owner), call.args[0].value
    if gathered is not None and _kept(program, call, loss, gathered):
        yield _hit(loss, f"{gathered} keeps the graph of {dotted(loss)} of each step")


def _scaled(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """`loss` in `loss`, `loss * n` and `loss / n`."""
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, (cst.Multiply, cst.Divide)):
        return value.left
    return value


def _kept(program: Program, node: cst.CSTNode, loss: cst.BaseExpression, total: str) -> bool:
    name = dotted(loss)
    loop = program.steps.loop_of(node)
    if name is None or loop is None or total == name or program.without_grad(node):
        return False
    if not program.values.is_device_tensor(loss):
        return False
    inside = [
        c for c in program.steps.backward_calls if program.file.inside(c, loop) and _differentiates(c, name)
    ]
    if not inside or _differentiated(program, node, total):
        return False
    return not _started_in(program, loop, total)


def _differentiates(call: cst.Call, name: str) -> bool:
    owner = receiver(call)
    given = [arg.value for arg in call.args]
    if isinstance(owner, cst.Call):  # scaler.scale(loss).backward()
        given += [arg.value for arg in owner.args]
    elif owner is not None:
        given.append(owner)
    return any(dotted(value) == name for value in given)


def _differentiated(program: Program, node: cst.CSTNode, total: str) -> bool:
    """Whether the total is used in anything that is differentiated: then its graph is meant to live."""
    scope = program.file.enclosing(node, cst.FunctionDef) or program.file.module
    text = [
        program.file.module.code_for_node(call)
        for call in program.steps.backward_calls
        if program.file.inside(call, scope)
    ]
    return any(total in line for line in text)


def _started_in(program: Program, loop: cst.For | cst.While, total: str) -> bool:
    return any(dotted(target.target) == total for target in program.file.under(loop.body, cst.AssignTarget))


def _hit(loss: cst.BaseExpression, seen: str) -> Hit:
    detached = cst.Call(func=cst.Attribute(value=loss, attr=cst.Name("detach")))
    return Hit(loss, seen, edits=(Edit(loss, detached),))


rule = Rule(
    code="loss-graph-kept-alive",
    title="A running total keeps every step's graph alive",
    severity=Severity.WARNING,
    advice="Add loss.detach(), and read the sum once at the end.",
    fix=Safety.SAFE,
    page=__doc__,
    words=("backward",),
    visits=(Visit(cst.AugAssign, check_sum), Visit(cst.Call, check_append)),
)
