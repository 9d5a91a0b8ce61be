"""A tensor grows by concatenation in a loop.

## What it does
Finds `x = torch.cat([x, new])` inside a loop.

## Why it is slow
Each turn copies all that was gathered so far: n turns copy n squared over two rows, and the autograd graph
becomes n deep.

## When it is fine
The loop has a handful of turns, or each turn needs all that was gathered (dense blocks); sampling text grows
the context this way and spends its time in the model. The rule speaks of code outside `generate` and `sample`
functions only.

## Example
```python
for part in parts:
    out = torch.cat([out, f(part)])
```
Use instead:
```python
out = torch.cat([f(part) for part in parts])
```

## References
- [PyTorch, torch.cat](https://docs.pytorch.org/docs/stable/generated/torch.cat.html)
"""

import re
from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_CATS = frozenset({"torch.cat", "torch.concat", "torch.concatenate", "torch.vstack", "torch.hstack"})
_GENERATES = re.compile(r"generat|sampl|decode|search|predict|infer")


def check(program: Program, assign: cst.Assign) -> Iterator[Hit]:
    """Find names that grow by torch.cat in a loop."""
    name = dotted(assign.targets[0].target)
    call = assign.value
    if (
        name is None
        or not isinstance(call, cst.Call)
        or program.names.call(call) not in _CATS
        or not call.args
    ):
        return
    parts = call.args[0].value
    if not isinstance(parts, (cst.List, cst.Tuple)):
        return
    loop: cst.CSTNode | None = program.file.enclosing(assign, cst.For, cst.While, cst.FunctionDef)
    grows = any(dotted(element.value) == name for element in parts.elements)
    if not grows or not isinstance(loop, (cst.For, cst.While)):
        return
    needed = _made_in(program, loop, assign, name) or _read_in(program, loop, assign, name)
    if not needed and not _generates(program, assign):
        yield Hit(assign, f"{name} is copied whole in each turn")


def _made_in(program: Program, loop: cst.For | cst.While, assign: cst.Assign, name: str) -> bool:
    """Whether the loop itself starts the name anew in each turn."""
    others = [t for t in program.file.under(loop, cst.AssignTarget) if dotted(t.target) == name]
    targets = (
        [n.value for n in program.file.under(loop.target, cst.Name)] if isinstance(loop, cst.For) else []
    )
    return name in targets or any(not program.file.inside(target, assign) for target in others)


def _read_in(program: Program, loop: cst.For | cst.While, assign: cst.Assign, name: str) -> bool:
    """Whether a turn needs what was gathered so far, as a dense block does."""
    uses = [node for node in program.file.under(loop.body, cst.Name) if node.value == name]
    return any(not program.file.inside(node, assign) for node in uses)


def _generates(program: Program, node: cst.CSTNode) -> bool:
    function = program.file.enclosing(node, cst.FunctionDef)
    return function is not None and _GENERATES.search(function.name.value.lower()) is not None


rule = Rule(
    code="cat-grows-in-loop",
    title="A tensor grows by concatenation in a loop",
    severity=Severity.INFO,
    advice="Gather the parts in a list and concatenate once.",
    holds_its_cost=True,
    page=__doc__,
    words=("torch.cat", "torch.concat", "stack"),
    visits=(Visit(cst.Assign, check),),
)
