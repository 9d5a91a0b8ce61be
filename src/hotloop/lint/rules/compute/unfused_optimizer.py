"""The optimizer updates each parameter with kernels of its own.

## What it does
Finds an optimizer of `torch.optim` with `foreach=False` or `fused=False` (a warning), and Adam, AdamW, SGD or
Adagrad without `fused=True` in a program for CUDA (as information).

## Why it is slow
Without either, each parameter tensor costs several launches; the foreach default groups them; the fused one
reads and writes each number once.

## When it is fine
Sparse gradients, complex parameters, memory limits (foreach needs a copy of the gradients' size), programs
limited elsewhere.

## Example
```python
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
```
Use instead:
```python
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
```

## References
- [PyTorch, torch.optim: implementations](https://docs.pytorch.org/docs/stable/optim.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import has_star, is_literal, keyword
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import with_argument, without_argument

_FUSED = frozenset(f"torch.optim.{name}" for name in ("Adam", "AdamW", "SGD", "Adagrad"))


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find optimizers that are not fused."""
    full = program.names.call(call)
    if not full.startswith("torch.optim.") or not full.rpartition(".")[2][:1].isupper() or has_star(call):
        return
    for name in ("foreach", "fused"):
        if is_literal(keyword(call, name), "False"):
            edit = Edit(call, _fused(call, name, full in _FUSED and program.on_cuda))
            yield Hit(call, f"{name}=False", Severity.WARNING, edits=(edit,))
            return
    given = keyword(call, "fused") is not None or keyword(call, "foreach") is not None
    if full in _FUSED and program.on_cuda and not given:
        edit = Edit(call, with_argument(call, "fused", "True"))
        yield Hit(call, f"{full.rpartition('.')[2]} without fused=True", edits=(edit,))


def _fused(call: cst.Call, name: str, possible: bool) -> cst.Call:
    bare = without_argument(call, name)
    return with_argument(bare, "fused", "True") if possible else bare


rule = Rule(
    code="unfused-optimizer",
    title="The optimizer is not fused",
    severity=Severity.INFO,
    advice="Give fused=True where the optimizer and the device have it.",
    optimization="fused_optimizer",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=("optim",),
    visits=(Visit(cst.Call, check),),
)
