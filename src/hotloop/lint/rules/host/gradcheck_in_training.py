"""Gradients are checked numerically in each step.

## What it does
Finds `torch.autograd.gradcheck` and `gradgradcheck` in code that runs in each training step.

## Why it is slow
The check evaluates the function twice for each input element, in double precision.

## When it is fine
In tests, which the rule does not look at.

## Example
```python
for x, y in loader:
    torch.autograd.gradcheck(layer, x.double())
    loss_fn(model(x), y).backward(); optimizer.step()
```
Use instead:
```python
def test_layer():
    assert torch.autograd.gradcheck(layer, example.double())
```

## References
- [PyTorch, Gradcheck mechanics](https://docs.pytorch.org/docs/stable/notes/gradcheck.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_CHECKS = words(
    """
    torch.autograd.gradcheck torch.autograd.gradgradcheck torch.autograd.gradcheck.gradcheck
    """
)


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find gradient checks in the step."""
    if program.names.call(call) in _CHECKS and program.steps.runs_each_step(call):
        yield Hit(call, "numerical gradients in each step")


rule = Rule(
    code="gradcheck-in-training",
    title="Gradients are checked numerically while training",
    severity=Severity.WARNING,
    advice="Move the check into a test.",
    optimization="debug_apis_off",
    page=__doc__,
    words=("gradcheck", "gradgradcheck"),
    visits=(Visit(cst.Call, check),),
)
