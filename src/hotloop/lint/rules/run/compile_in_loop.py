"""The model is compiled again and again.

## What it does
Finds `torch.compile(...)`, `torch.jit.script` or `torch.jit.trace` called inside a loop that trains, or in
code that runs in each step, outside any branch.

## Why it is slow
Each call makes a new compiled function with empty caches: seconds to minutes of compilation each time.

## When it is fine
Loops over different models; the rule looks only at loops that hold a training loop or are one.

## Example
```python
for epoch in range(epochs):
    compiled = torch.compile(model)
    train(compiled)
```
Use instead:
```python
compiled = torch.compile(model)
for epoch in range(epochs):
    train(compiled)
```

## References
- [PyTorch, torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_COMPILERS = frozenset({"torch.compile", "torch.jit.script", "torch.jit.trace"})


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find compilers called in training loops."""
    if program.names.call(call) not in _COMPILERS or program.file.enclosing(call, cst.If) is not None:
        return
    if program.steps.in_step_loop(call):
        yield Hit(call, f"{program.names.call(call)} in each step")
        return
    loop = program.file.enclosing(call, cst.For, cst.While, cst.FunctionDef)
    if isinstance(loop, (cst.For, cst.While)) and _trains(program, loop):
        yield Hit(call, f"{program.names.call(call)} in each turn of a loop that trains")


def _trains(program: Program, loop: cst.For | cst.While) -> bool:
    head = program.file.module.code_for_node(loop.iter if isinstance(loop, cst.For) else loop.test)
    target = program.file.module.code_for_node(loop.target) if isinstance(loop, cst.For) else ""
    if "epoch" not in f"{head} {target}".lower():
        return False
    return any(program.file.inside(other, loop) for other in program.steps.loops) or "train" in "".join(
        program.file.module.code_for_node(c.func) for c in program.file.under(loop.body, cst.Call)
    )


rule = Rule(
    code="compile-in-loop",
    title="The model is compiled again and again",
    severity=Severity.WARNING,
    advice="Compile once, before the loop.",
    optimization="compile",
    holds_its_cost=True,
    page=__doc__,
    words=("compile", "jit"),
    visits=(Visit(cst.Call, check),),
)
