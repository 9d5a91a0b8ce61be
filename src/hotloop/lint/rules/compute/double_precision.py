"""The model computes in float64 on an accelerator.

## What it does
Finds `torch.set_default_dtype(torch.float64)` and `.double()` on a module, in a program that trains on CUDA.

## Why it is slow
Most GPUs compute float64 at a thirty-second or a sixty-fourth of their float32 rate, and twice as many bytes
move.

## When it is fine
Physics and solvers that need it, on data-centre GPUs that have the units.

## Example
```python
model = Net().cuda().double()
```
Use instead:
```python
model = Net().cuda()
```

## References
- NVIDIA, CUDA C++ Programming Guide: arithmetic throughput:
  https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#arithmetic-instructions
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method, receiver
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_DOUBLE = frozenset({"torch.float64", "torch.double", "torch.DoubleTensor", "torch.cuda.DoubleTensor"})


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find modules and defaults in float64."""
    if not program.on_cuda or not program.steps.loops:
        return
    full = program.names.call(call)
    sets_default = full in {"torch.set_default_dtype", "torch.set_default_tensor_type"} and call.args
    if sets_default and program.names.of(call.args[0].value) in _DOUBLE:
        yield Hit(call, "float64 is the default type")
    owner = receiver(call)
    if method(call) == "double" and owner is not None and program.values.is_module(owner):
        yield Hit(call, "the module is converted to float64")


rule = Rule(
    code="double-precision",
    title="The model computes in float64 on an accelerator",
    severity=Severity.WARNING,
    advice="Use float32 or less unless the problem needs float64.",
    optimization="autocast_bf16",
    page=__doc__,
    words=("double", "float64", "DoubleTensor"),
    visits=(Visit(cst.Call, check),),
)
