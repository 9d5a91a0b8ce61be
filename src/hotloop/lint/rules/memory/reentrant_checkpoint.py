"""Activation checkpointing uses its old, reentrant form.

## What it does
Finds `torch.utils.checkpoint.checkpoint` with `use_reentrant=True`, and without the argument, where torch
warns.

## Why it is slow
The reentrant form always recomputes the whole block, even what is not needed, saves the random state each
time, and does not work with compiled graphs, DDP's static graph or selective checkpointing.

## When it is fine
Blocks that need gradients of their inputs inside the recomputation in the old way.

## Example
```python
x = checkpoint(self.block, x)
```
Use instead:
```python
x = checkpoint(self.block, x, use_reentrant=False)
```

## References
- [PyTorch, torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.read.syntax import is_literal, keyword
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import with_argument

_CHECKPOINTS = words(
    """
    torch.utils.checkpoint.checkpoint torch.utils.checkpoint.checkpoint_sequential
    """
)


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find reentrant checkpoints."""
    if program.names.call(call) not in _CHECKPOINTS:
        return
    given = keyword(call, "use_reentrant")
    if any(arg.star == "**" for arg in call.args) or (given is not None and not is_literal(given, "True")):
        return
    seen = "use_reentrant=True" if given is not None else "use_reentrant is not given"
    yield Hit(call, seen, edits=(Edit(call, with_argument(call, "use_reentrant", "False")),))


rule = Rule(
    code="reentrant-checkpoint",
    title="Checkpointing uses its reentrant form",
    severity=Severity.INFO,
    advice="Give use_reentrant=False.",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=("checkpoint",),
    visits=(Visit(cst.Call, check),),
)
