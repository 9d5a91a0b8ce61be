"""Gradients are reduced in each micro-step and used only in the last.

## What it does
Finds gradient accumulation (an optimizer step under `if ... % n`, with the backward call outside that branch)
in a file that wraps its model in DistributedDataParallel and knows no `no_sync`.

## Why it is slow
Each backward pass ends with an all-reduce of all gradients; the sums are needed once for each optimizer step.

## When it is fine
One micro-step for each step.

## Example
```python
loss.backward()
if (i + 1) % accumulate == 0:
    optimizer.step()
```
Use instead:
```python
last = (i + 1) % accumulate == 0
with nullcontext() if last else model.no_sync():
    loss.backward()
if last:
    optimizer.step()
```

## References
- PyTorch, DistributedDataParallel.no_sync:
  https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.guards import is_periodic
from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, _: cst.Module) -> Iterator[Hit]:
    """Find accumulation under DDP without no_sync."""
    text = program.file.text
    if any(word in text for word in ("no_sync", "require_backward_grad_sync", "set_requires_gradient_sync")):
        return
    if not any(_is_ddp(program, call) for call in program.file.all(cst.Call)):
        return
    for loop in program.steps.loops:
        backward = [c for c in program.steps.backward_calls if program.file.inside(c, loop.body)]
        for step in program.steps.optimizer_steps:
            branch = program.file.enclosing(step, cst.If, cst.For, cst.While)
            if not isinstance(branch, cst.If) or not program.file.inside(branch, loop.body):
                continue
            if (
                is_periodic(branch.test)
                and backward
                and not any(program.file.inside(c, branch) for c in backward)
            ):
                yield Hit(backward[0], "accumulated gradients are reduced in each micro-step")
                return


def _is_ddp(program: Program, call: cst.Call) -> bool:
    return program.names.call(call).endswith("DistributedDataParallel")


rule = Rule(
    code="all-reduce-every-micro-step",
    title="Gradients are reduced in each micro-step",
    severity=Severity.WARNING,
    advice="Put all but the last backward pass under model.no_sync().",
    page=__doc__,
    words=("DistributedDataParallel",),
    visits=(Visit(cst.Module, check),),
)
