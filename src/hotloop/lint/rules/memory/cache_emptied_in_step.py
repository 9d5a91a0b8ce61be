"""The allocator's cache is emptied in every step.

## What it does
Finds `torch.cuda.empty_cache()` (and the forms for other accelerators) in code that runs in each training
step.

## Why it is slow
Freed blocks go back to the driver, which synchronizes the device, and are asked for again in the next step.

## When it is fine
Between phases of very different shapes: once per epoch, before evaluation. Memory that the cache holds is not
lost to the program. The fix is unsafe because a program at the edge may fragment without it.

## Example
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    torch.cuda.empty_cache()
```
Use instead:
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
```

## References
- PyTorch, CUDA semantics: memory management:
  https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety

_EMPTIES = frozenset(
    f"torch.{device}.empty_cache" for device in ("cuda", "xpu", "mps", "accelerator", "npu")
) | {"torch.cuda.memory.empty_cache"}


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find emptied caches in the step."""
    if program.names.call(call) in _EMPTIES and program.steps.runs_each_step(call):
        statement = program.file.parent(call)
        edits = (Edit(statement, None),) if isinstance(statement, cst.Expr) else ()
        yield Hit(call, f"{program.names.call(call)}() in each step", edits=edits)


rule = Rule(
    code="cache-emptied-in-step",
    title="The allocator's cache is emptied in each step",
    severity=Severity.WARNING,
    advice="Remove it; against fragmentation use expandable segments.",
    fix=Safety.UNSAFE,
    holds_its_cost=True,
    page=__doc__,
    words=("empty_cache",),
    visits=(Visit(cst.Call, check),),
)
