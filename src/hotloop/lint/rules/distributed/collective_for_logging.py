"""A number for the log is reduced over all ranks in every step.

## What it does
Finds `dist.all_reduce`, `reduce`, `all_gather` and `gather` of a loss in a training loop, in each step, and
Lightning's `self.log(..., sync_dist=True)` in a `training_step` that logs each step.

## Why it is slow
A small collective costs the latency of the link and waits for the slowest rank, tens of microseconds to
milliseconds, for a number that is looked at now and then.

## When it is fine
The value steers the training.

## Example
```python
dist.all_reduce(loss_for_log)
```
Use instead:
```python
if step % 100 == 0:
    dist.all_reduce(loss_for_log)
```

## References
- [PyTorch, torch.distributed](https://docs.pytorch.org/docs/stable/distributed.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import is_literal, keyword
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_COLLECTIVES = frozenset(
    f"torch.distributed.{name}" for name in ("all_reduce", "reduce", "all_gather", "gather")
)


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find collectives on losses and metrics in the step."""
    if _logs_and_reduces(program, call):
        yield Hit(call, "self.log(..., sync_dist=True) in each step")
        return
    if program.names.call(call) not in _COLLECTIVES or not call.args:
        return
    given = (dotted(call.args[-1].value) or dotted(call.args[0].value) or "").lower()
    about_log = any(word in given for word in ("loss", "acc", "metric", "correct"))
    if about_log and program.steps.in_step_loop(call):
        yield Hit(call, f"{program.names.call(call)} of {given} in each step")


def _logs_and_reduces(program: Program, call: cst.Call) -> bool:
    if dotted(call.func) not in {"self.log", "self.log_dict"} or is_literal(
        keyword(call, "on_step"), "False"
    ):
        return False
    function = program.file.enclosing(call, cst.FunctionDef)
    in_step = function is not None and function.name.value == "training_step"
    return in_step and is_literal(keyword(call, "sync_dist"), "True")


rule = Rule(
    code="collective-for-logging",
    title="A logged number is reduced over the ranks in each step",
    severity=Severity.INFO,
    advice="Reduce it only in the steps that log it.",
    page=__doc__,
    words=("all_reduce", "reduce", "gather", "sync_dist"),
    visits=(Visit(cst.Call, check),),
)
