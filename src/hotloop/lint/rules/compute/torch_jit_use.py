"""The program uses TorchScript.

## What it does
Finds `torch.jit.script` and `torch.jit.trace`.

## Why it is slow
TorchScript fuses less than `torch.compile`, knows no newer operators, and is no longer developed. Its
profiling executor specializes again for new shapes in the first steps.

## When it is fine
A deployment that loads TorchScript files (C++ or mobile).

## Example
```python
model = torch.jit.script(model)
```
Use instead:
```python
model = torch.compile(model)
```

## References
- [PyTorch, TorchScript](https://docs.pytorch.org/docs/stable/jit.html)
- [PyTorch, torch.export](https://docs.pytorch.org/docs/stable/export.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_USES = words(
    """
    torch.jit.script torch.jit.trace torch.jit.freeze torch.jit.optimize_for_inference
    """
)


def check_call(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find calls of the scripting functions."""
    if program.names.call(call) in _USES:
        yield Hit(call, program.names.call(call))


def check_decorator(program: Program, decorator: cst.Decorator) -> Iterator[Hit]:
    """Find decorated functions."""
    if program.names.of(decorator.decorator) in _USES:
        yield Hit(decorator, f"@{program.names.of(decorator.decorator)}")


rule = Rule(
    code="torch-jit-use",
    title="The program uses TorchScript",
    severity=Severity.INFO,
    advice="Try torch.compile, or torch.export for deployment.",
    page=__doc__,
    words=("jit",),
    visits=(Visit(cst.Call, check_call), Visit(cst.Decorator, check_decorator)),
)
