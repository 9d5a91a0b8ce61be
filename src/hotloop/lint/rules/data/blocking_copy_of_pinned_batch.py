"""The host waits for the copy of a batch that is pinned.

## What it does
Finds `.to(device)` and `.cuda()` on a loader's batch inside the training loop, without `non_blocking=True`,
where a loader of the same file pins its memory.

## Why it is slow
Pinning makes an asynchronous copy possible; without `non_blocking=True` the host still waits for its end
before it launches the forward pass.

## When it is fine
The batch is changed in place on the host right after the copy. On a CPU nothing is copied.

## Example
```python
for images, labels in loader:      # pin_memory=True
    images = images.to(device)
    loss(model(images), labels).backward()
```
Use instead:
```python
    images = images.to(device, non_blocking=True)
```

## References
- PyTorch, A guide on good usage of non_blocking and pin_memory:
  https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.moves import moves_to_device
from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument, has_star, is_literal, keyword, receiver
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import with_argument


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find blocking copies of loader batches in step loops."""
    if not moves_to_device(call) or keyword(call, "non_blocking") is not None or has_star(call):
        return
    if not any(is_literal(argument(loader, 7, "pin_memory"), "True") for loader in program.loaders):
        return
    if _is_batch(program, call) and program.steps.in_step_loop(call):
        edit = Edit(call, with_argument(call, "non_blocking", "True"))
        yield Hit(call, "a pinned batch is copied and waited for", edits=(edit,))


def _is_batch(program: Program, call: cst.Call) -> bool:
    owner = receiver(call)
    if owner is None:
        return False
    if program.values.kind(owner) is Kind.BATCH:
        return True
    return _is_loop_target(program, call, owner)


def _is_loop_target(program: Program, call: cst.Call, owner: cst.BaseExpression) -> bool:
    """Whether the name is bound by the step loop's own head, whose iterable sounds like a loader."""
    loop = program.steps.loop_of(call)
    name = dotted(owner)
    if (
        not isinstance(loop, cst.For)
        or name is None
        or "load" not in program.file.module.code_for_node(loop.iter)
    ):
        return False
    return any(target.value == name for target in program.file.under(loop.target, cst.Name))


rule = Rule(
    code="blocking-copy-of-pinned-batch",
    title="The host waits for the copy of a pinned batch",
    severity=Severity.WARNING,
    advice="Copy with non_blocking=True.",
    optimization="pinned_memory",
    fix=Safety.SAFE,
    page=__doc__,
    words=("pin_memory",),
    visits=(Visit(cst.Call, check),),
)
