"""TF32 is switched off.

## What it does
Finds `torch.backends.cuda.matmul.allow_tf32 = False`, the same for cuDNN, and
`set_float32_matmul_precision("highest")`.

## Why it is slow
With TF32 the tensor cores multiply float32 matrices about eight times faster, with a mantissa of 10 bits.

## When it is fine
Solvers, metrics and regressions that need all 23 bits; runs that are compared bit by bit.

## Example
```python
torch.backends.cuda.matmul.allow_tf32 = False
```
Use instead:
```python
torch.set_float32_matmul_precision("high")
```

## References
- PyTorch, CUDA semantics: TensorFloat-32:
  https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.guards import is_switched
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import is_literal, string
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety

_FLAGS = frozenset({"torch.backends.cuda.matmul.allow_tf32", "torch.backends.cudnn.allow_tf32"})


def check_assign(program: Program, assign: cst.Assign) -> Iterator[Hit]:
    """Find the flags set to False."""
    full = program.names.of(assign.targets[0].target)
    if full in _FLAGS and is_literal(assign.value, "False") and not is_switched(program.file, assign):
        yield Hit(assign, f"{full} = False", edits=(Edit(assign.value, cst.Name("True")),))


def check_call(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find the highest matmul precision asked for."""
    if program.names.call(call) != "torch.set_float32_matmul_precision" or not call.args:
        return
    if string(call.args[0].value) == "highest" and not is_switched(program.file, call):
        edit = Edit(call.args[0].value, cst.SimpleString('"high"'))
        yield Hit(call, 'set_float32_matmul_precision("highest")', edits=(edit,))


rule = Rule(
    code="tf32-off",
    title="TF32 matrix units are switched off",
    severity=Severity.WARNING,
    advice='Use torch.set_float32_matmul_precision("high") unless the model needs full float32.',
    optimization="tf32_matmul",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=("allow_tf32", "set_float32_matmul_precision"),
    visits=(Visit(cst.Assign, check_assign), Visit(cst.Call, check_call)),
)
