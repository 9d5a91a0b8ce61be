"""A profiler runs around the whole training.

## What it does
Finds an autograd profiler, `emit_nvtx`, or a `torch.profiler.profile` without a schedule around a training
loop, and `Trainer(profiler="advanced")` or `"pytorch"`.

## Why it is slow
The profiler notes each operator, and with shapes and stacks on each costs tens of microseconds. Its records
grow in host memory until the block ends.

## When it is fine
The program is there to be profiled. A schedule that records a few steps costs little.

## Example
```python
with torch.autograd.profiler.profile():
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
```
Use instead:
```python
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
```

## References
- [PyTorch, torch.profiler](https://docs.pytorch.org/docs/stable/profiler.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.guards import is_switched
from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.read.syntax import is_literal, keyword, string
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_ALWAYS = words(
    """
    torch.autograd.profiler.profile torch.autograd.profiler.emit_nvtx torch.autograd.profiler.emit_itt
    torch.cuda.profiler.profile
    """
)


def check_with(program: Program, block: cst.With) -> Iterator[Hit]:
    """Find profilers around training loops."""
    if not any(program.file.inside(loop, block) for loop in program.steps.loops):
        return
    for item in block.items:
        call = item.item
        if (
            isinstance(call, cst.Call)
            and _profiles_all(program, call)
            and not is_switched(program.file, block)
        ):
            yield Hit(block, f"{program.names.call(call)} around the training loop")


def _profiles_all(program: Program, call: cst.Call) -> bool:
    if any(is_literal(arg.value, "False") for arg in call.args if arg.keyword is None):
        return False
    enabled = keyword(call, "enabled")
    if enabled is not None and not is_literal(enabled, "True"):
        return False
    full = program.names.call(call)
    return full in _ALWAYS or (full == "torch.profiler.profile" and keyword(call, "schedule") is None)


def check_call(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find trainers with a profiler that records operators or functions."""
    if program.names.call(call) == "lightning.pytorch.Trainer":
        name = string(keyword(call, "profiler"))
        if name in {"advanced", "pytorch"}:
            yield Hit(call, f'Trainer(profiler="{name}")')


rule = Rule(
    code="profiler-left-on",
    title="A profiler runs around the whole training",
    severity=Severity.WARNING,
    advice="Remove it, or give it a schedule of a few steps.",
    optimization="debug_apis_off",
    page=__doc__,
    words=("profile", "emit_nvtx", "emit_itt"),
    visits=(Visit(cst.With, check_with), Visit(cst.Call, check_call)),
)
