"""Only deterministic kernels are allowed.

## What it does
Finds `torch.use_deterministic_algorithms(True)` and `torch.backends.cudnn.deterministic = True`.

## Why it is slow
Fast kernels that add in any order (atomics) are shut out, and cuDNN is kept from many algorithms.

## When it is fine
Runs whose bits must repeat: debugging, regression tests, some regulated work. It is information for that
reason.

## Example
```python
torch.backends.cudnn.deterministic = True
```
Use instead:
```python
torch.backends.cudnn.deterministic = args.deterministic
```

## References
- [PyTorch, Reproducibility](https://docs.pytorch.org/docs/stable/notes/randomness.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.guards import is_switched
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import is_literal, keyword
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check_assign(program: Program, assign: cst.Assign) -> Iterator[Hit]:
    """Find cuDNN held to deterministic algorithms."""
    full = program.names.of(assign.targets[0].target)
    wanted = full == "torch.backends.cudnn.deterministic" and is_literal(assign.value, "True")
    if wanted and not is_switched(program.file, assign):
        yield Hit(assign, "cudnn.deterministic = True")


def check_call(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find torch held to deterministic algorithms."""
    full = program.names.call(call)
    if full == "torch.use_deterministic_algorithms" and call.args and is_literal(call.args[0].value, "True"):
        if not is_switched(program.file, call):
            yield Hit(call, "use_deterministic_algorithms(True)")
    elif full == "lightning.pytorch.Trainer" and is_literal(keyword(call, "deterministic"), "True"):
        yield Hit(call, "Trainer(deterministic=True)")


rule = Rule(
    code="deterministic-on",
    title="Only deterministic kernels are allowed",
    severity=Severity.INFO,
    advice="Ask for determinism by an option, and only where the bits must repeat.",
    optimization="kernel_autotune",
    page=__doc__,
    words=("deterministic",),
    visits=(Visit(cst.Assign, check_assign), Visit(cst.Call, check_call)),
)
