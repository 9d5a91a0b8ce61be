"""The program synchronizes the device in every step.

## What it does
Finds `torch.cuda.synchronize()` (and the forms for other accelerators) in code that runs in each training
step.

## Why it is slow
The host waits until the device is idle, and the device then waits until the host has launched the next
kernels.

## When it is fine
A benchmark that times single steps. The fix is unsafe because such timings change their meaning.

## Example
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    torch.cuda.synchronize()
```
Use instead:
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
```

## References
- PyTorch, CUDA semantics: asynchronous execution:
  https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety

_WAITS = frozenset(
    f"torch.{device}.synchronize" for device in ("cuda", "xpu", "mps", "accelerator", "hpu", "npu")
)


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find device synchronization in the step."""
    if program.names.call(call) in _WAITS and program.steps.runs_each_step(call):
        statement = program.file.parent(call)
        edits = (Edit(statement, None),) if isinstance(statement, cst.Expr) else ()
        yield Hit(call, f"{program.names.call(call)}() in each step", edits=edits)


rule = Rule(
    code="synchronize-in-step",
    title="The device is synchronized in each step",
    severity=Severity.WARNING,
    advice="Remove it; time whole windows of steps with one synchronization at each end.",
    fix=Safety.UNSAFE,
    holds_its_cost=True,
    page=__doc__,
    words=("synchronize",),
    visits=(Visit(cst.Call, check),),
)
