"""A new iterator over the loader is made for every step.

## What it does
Finds `next(iter(loader))` inside the training loop, and a `DataLoader` built inside it.

## Why it is slow
A new iterator starts the workers again (or at least shuffles all indices again) and throws away every batch
that was already prefetched.

## When it is fine
The loader is a plain list or an in-memory sampler without workers; the rule speaks only of a known
`DataLoader`.

## Example
```python
for step in range(steps):
    images, labels = next(iter(loader))
    loss_fn(model(images), labels).backward()
    optimizer.step()
```
Use instead:
```python
for images, labels in loader:
    loss_fn(model(images), labels).backward()
    optimizer.step()
```

## References
- [PyTorch, torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find loaders that are built or started in the step."""
    if program.names.call(call) == "torch.utils.data.DataLoader":
        if program.steps.in_step_loop(call):
            yield Hit(call, "a DataLoader is built in each step")
    elif _is_next_iter(program, call) and program.steps.in_step_loop(call):
        yield Hit(call, "the loader starts again for each batch")


def _is_next_iter(program: Program, call: cst.Call) -> bool:
    if not (isinstance(call.func, cst.Name) and call.func.value == "next" and call.args):
        return False
    inner = call.args[0].value
    if not (isinstance(inner, cst.Call) and isinstance(inner.func, cst.Name) and inner.func.value == "iter"):
        return False
    if not inner.args:
        return False
    made = inner.args[0].value
    named = program.file.module.code_for_node(made).lower()
    return program.values.kind(made) is Kind.LOADER or "loader" in named


rule = Rule(
    code="loader-restarted-each-step",
    title="The data loader is started again for every step",
    severity=Severity.WARNING,
    advice="Iterate the loader itself, or keep one iterator and renew it only when it ends.",
    holds_its_cost=True,
    page=__doc__,
    words=("iter(", "DataLoader"),
    visits=(Visit(cst.Call, check),),
)
