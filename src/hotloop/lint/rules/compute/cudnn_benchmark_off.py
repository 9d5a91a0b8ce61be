"""cuDNN may not choose its fastest algorithm.

## What it does
Finds `torch.backends.cudnn.benchmark = False`, and `torch.backends.cudnn.enabled = False` (a warning).

## Why it is slow
With `benchmark` on, cuDNN times its algorithms once for each shape and keeps the best; off, it follows a
heuristic. Without cuDNN, convolutions run on slow fallbacks.

## When it is fine
Input sizes that change with every batch, where each new shape is timed again; reproducible runs.

## Example
```python
torch.backends.cudnn.benchmark = False
```
Use instead:
```python
torch.backends.cudnn.benchmark = True
```

## References
- PyTorch, Performance Tuning Guide: enable cuDNN auto-tuner:
  https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.guards import is_switched
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import is_literal
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety

_FLAGS = {
    "torch.backends.cudnn.benchmark": Severity.INFO,
    "torch.backends.cudnn.enabled": Severity.WARNING,
}


def check(program: Program, assign: cst.Assign) -> Iterator[Hit]:
    """Find the flags set to False."""
    full = program.names.of(assign.targets[0].target)
    if full in _FLAGS and is_literal(assign.value, "False") and not is_switched(program.file, assign):
        edit = Edit(assign.value, cst.Name("True"))
        yield Hit(assign, f"{full} = False", _FLAGS[full], edits=(edit,))


rule = Rule(
    code="cudnn-benchmark-off",
    title="cuDNN may not choose its fastest algorithm",
    severity=Severity.INFO,
    advice="Set torch.backends.cudnn.benchmark = True where input sizes stay the same.",
    optimization="kernel_autotune",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=("cudnn",),
    visits=(Visit(cst.Assign, check),),
)
