"""Loader workers are started again in each epoch.

## What it does
Finds a `DataLoader` for training with workers and without `persistent_workers=True`. It is a warning where
the file iterates that loader inside an outer loop, and information elsewhere, also where `num_workers` is an
option or a variable that may be 0: the edit then is `persistent_workers=args.workers > 0`.

## Why it is slow
At each start of an iteration the workers are forked or spawned, import what they need, and the first batches
are made while the device waits.

## When it is fine
Epochs are so long that the start does not show, or the data set object is changed between epochs in the main
process: persistent workers keep their old copy of it. Without workers, `persistent_workers=True` is a
ValueError.

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
from hotloop.lint.read.syntax import argument, has_star, integer, is_literal, keyword
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.patterns.told_datasets import changed_from_outside
from hotloop.source.calls import with_argument


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find training loaders whose workers end with each epoch."""
    if program.names.call(call) != "torch.utils.data.DataLoader" or has_star(call):
        return
    workers = argument(call, 5, "num_workers")
    persistent = keyword(call, "persistent_workers")
    if workers is None or _is_zero(program, workers) or not program.is_training_loader(call):
        return
    if persistent is not None and not is_literal(persistent, "False"):
        return
    if changed_from_outside([(program.file.path, program.file.text)]):
        return  # workers that live on would go on with the data set as it was
    if integer(workers) is not None:
        severity = Severity.WARNING if _iterated_in_epochs(program, call) else Severity.INFO
        yield Hit(call, "the workers end with every epoch", severity, _edits(call, "True"))
        return
    number = dotted(workers)
    value = f"{number} > 0" if number is not None else None
    yield Hit(
        call,
        "num_workers may be 0; where it is not, the workers end with every epoch",
        Severity.INFO,
        _edits(call, value) if value is not None else (),
        advice=f"Give persistent_workers={value or 'True where num_workers is above 0'}: "
        "DataLoader refuses True without workers.",
    )


def _edits(call: cst.Call, value: str) -> tuple[Edit, ...]:
    return (Edit(call, with_argument(call, "persistent_workers", value)),)


def _is_zero(program: Program, workers: cst.BaseExpression) -> bool:
    """Whether there are surely no workers: 0, or a variable of the same scope that is never anything else."""
    if not isinstance(workers, cst.Name):
        return integer(workers) == 0
    function = program.file.enclosing(workers, cst.FunctionDef)
    if function is not None and _is_parameter(function, workers.value):
        return False
    bound = program.bindings.of(program.bindings.scope(workers), workers.value)
    return bool(bound) and all(integer(one.value) == 0 for one in bound)


def _is_parameter(function: cst.FunctionDef, name: str) -> bool:
    given = function.params
    several = (*given.posonly_params, *given.params, *given.kwonly_params)
    return any(each.name.value == name for each in several)


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
