"""Loader workers are started again in each epoch.

## What it does
Finds a `DataLoader` for training with workers and without `persistent_workers=True`. It is a warning where
the file iterates that loader inside an outer loop, and information elsewhere.

## Why it is slow
At each start of an iteration the workers are forked or spawned, import what they need, and the first batches
are made while the device waits.

## When it is fine
Epochs are so long that the start does not show, or the data set object is changed between epochs in the main
process: persistent workers keep their old copy of it.

## Example
```python
loader = DataLoader(dataset, shuffle=True, num_workers=4)
```
Use instead:
```python
loader = DataLoader(dataset, shuffle=True, num_workers=4, persistent_workers=True)
```

## References
- PyTorch, torch.utils.data.DataLoader:
  https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument, has_star, integer, is_literal, keyword, with_keyword
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find training loaders whose workers end with each epoch."""
    if program.names.call(call) != "torch.utils.data.DataLoader" or has_star(call):
        return
    workers = argument(call, 5, "num_workers")
    persistent = keyword(call, "persistent_workers")
    if workers is None or integer(workers) == 0 or not program.is_training_loader(call):
        return
    if persistent is None or is_literal(persistent, "False"):
        certain = integer(workers) is not None
        edits = (Edit(call, with_keyword(call, "persistent_workers", "True")),) if certain else ()
        severity = Severity.WARNING if _iterated_in_epochs(program, call) and certain else Severity.INFO
        yield Hit(call, "the workers end with every epoch", severity, edits)


def _iterated_in_epochs(program: Program, call: cst.Call) -> bool:
    assign = program.file.enclosing(call, cst.Assign)
    if assign is None:
        return False
    name = dotted(assign.targets[0].target)
    for loop in program.file.all(cst.For):
        used = any(part.value == name for part in program.file.under(loop.iter, cst.Name))
        if used and program.file.enclosing(loop, cst.For, cst.While) is not None:
            return True
    return False


rule = Rule(
    code="workers-not-persistent",
    title="Loader workers are started anew in each epoch",
    severity=Severity.WARNING,
    advice="Give persistent_workers=True.",
    optimization="persistent_workers",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=("num_workers",),
    visits=(Visit(cst.Call, check),),
)
