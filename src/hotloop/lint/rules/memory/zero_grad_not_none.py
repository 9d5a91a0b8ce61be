"""Gradients are filled with zeros instead of being let go.

## What it does
Finds `zero_grad(set_to_none=False)`, and loops that call `p.grad.zero_()` or `p.grad.data.zero_()` on each
parameter of a model in the training step.

## Why it is slow
A kernel writes zeros into every gradient, the backward pass reads them and adds to them, and the memory stays
taken through the forward pass.

## When it is fine
Code that reads `.grad` before the next backward pass. With zeros, momentum and weight decay still move
parameters that had no gradient: the fix is unsafe for that reason.

## Example
```python
optimizer.zero_grad(set_to_none=False)
```
Use instead:
```python
optimizer.zero_grad()
```

## References
- PyTorch, Optimizer.zero_grad:
  https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument, is_literal, method, receiver
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety


def check_call(_: Program, call: cst.Call) -> Iterator[Hit]:
    """Find zero_grad that keeps the gradients."""
    if method(call) == "zero_grad" and is_literal(argument(call, 0, "set_to_none"), "False"):
        yield Hit(call, "set_to_none is False", edits=(Edit(call, call.with_changes(args=[])),))


def check_loop(program: Program, loop: cst.For) -> Iterator[Hit]:
    """Find loops that zero each gradient."""
    if not any(
        method(call) in {"parameters", "named_parameters"} for call in program.file.under(loop.iter, cst.Call)
    ):
        return
    for call in program.file.under(loop.body, cst.Call):
        owner = dotted(receiver(call)) if receiver(call) is not None else None  # type: ignore[arg-type]
        if (
            method(call) == "zero_"
            and owner is not None
            and ".grad" in owner
            and program.steps.in_step_loop(loop)
        ):
            yield Hit(call, "each gradient is zeroed by a kernel of its own")


rule = Rule(
    code="zero-grad-not-none",
    title="Gradients are zeroed instead of let go",
    severity=Severity.WARNING,
    advice="Call zero_grad() without set_to_none=False.",
    fix=Safety.UNSAFE,
    optimization="zero_grad_none",
    page=__doc__,
    words=("set_to_none", "zero_()"),
    visits=(Visit(cst.Call, check_call), Visit(cst.For, check_loop)),
)
