"""The same tensor is copied to the device again and again.

## What it does
Finds `.to(device)` or `.cuda()` in the training loop on a name that the loop never changes, and the same
transfer written twice in one step.

## Why it is slow
The data does not change, so every copy after the first is waste; from pageable memory each also stops the
host.

## When it is fine
The tensor is on the device already: then `.to` gives it back at once, and the line can go before the loop all
the same.

## Example
```python
for x, y in loader:
    loss = loss_fn(model(x), y, weights.to(device))
    loss.backward(); optimizer.step()
```
Use instead:
```python
weights = weights.to(device)
for x, y in loader:
    loss = loss_fn(model(x), y, weights)
    loss.backward(); optimizer.step()
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.moves import moves_to_device
from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import receiver
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find transfers of what the loop does not change, and transfers made twice."""
    owner = receiver(call)
    name = dotted(owner) if owner is not None else None
    loop = program.steps.loop_of(call)
    if name is None or loop is None or not moves_to_device(call) or not program.steps.runs_each_step(call):
        return
    if not _changed(program, loop, name):
        yield Hit(call, f"{name} does not change in the loop, and is moved in each step")
    elif _moved_before(program, loop, call, name):
        yield Hit(call, f"{name} was moved already in this step")


def _changed(program: Program, loop: cst.For | cst.While, name: str) -> bool:
    first = name.split(".", maxsplit=1)[0]
    if isinstance(loop, cst.For) and any(n.value == first for n in program.file.under(loop.target, cst.Name)):
        return True
    stores: list[cst.CSTNode] = [*program.file.under(loop.body, cst.AssignTarget)]
    stores += [other.target for other in program.file.under(loop.body, cst.For)]
    stores += [other.target for other in program.file.under(loop.body, cst.AugAssign)]
    stores += [
        other.asname for other in program.file.under(loop.body, cst.WithItem) if other.asname is not None
    ]
    stores += [other.target for other in program.file.under(loop.body, cst.NamedExpr)]
    stores += [other.target for other in program.file.under(loop.body, cst.CompFor)]
    return any(n.value == first for store in stores for n in program.file.under(store, cst.Name))


def _moved_before(program: Program, loop: cst.For | cst.While, call: cst.Call, name: str) -> bool:
    place = program.file.number(call)
    text = program.file.module.code_for_node(call)
    earlier = [
        other
        for other in program.file.under(loop.body, cst.Call)
        if program.file.number(other) < place and program.file.module.code_for_node(other) == text
    ]
    if not earlier or program.file.enclosing(call, cst.If) is not program.file.enclosing(earlier[-1], cst.If):
        return False
    since = program.file.number(earlier[-1])
    stores = [t for t in program.file.under(loop.body, cst.AssignTarget) if dotted(t.target) == name]
    return not any(since - 3 <= program.file.number(store) <= place for store in stores) and not any(
        program.file.inside(earlier[-1], statement)
        for store in stores
        if (statement := program.file.enclosing(store, cst.Assign)) is not None
    )


rule = Rule(
    code="repeated-transfer",
    title="The same tensor is moved to the device again and again",
    severity=Severity.WARNING,
    advice="Move it once, before the loop, or once at the top of the step.",
    optimization="created_on_device",
    holds_its_cost=True,
    page=__doc__,
    words=("backward",),
    visits=(Visit(cst.Call, check),),
)
