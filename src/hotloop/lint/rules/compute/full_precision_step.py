"""Training runs in full float32 on a device with faster units.

## What it does
Finds a training loop in a program for CUDA whose source speaks of no reduced precision at all: no autocast,
no bfloat16, no float16, no TF32. Given once for each file, as information.

## Why it is slow
Tensor cores multiply bfloat16 and float16 eight to sixteen times faster than plain float32, and half as many
bytes move.

## When it is fine
Models too small to be limited by matrix multiplication, hardware without such units, losses that need the
range. Programs that leave precision to a launcher or trainer.

## Example
```python
loss = loss_fn(model(x), y)
```
Use instead:
```python
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = loss_fn(model(x), y)
```

## References
- [PyTorch, Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, _: cst.Module) -> Iterator[Hit]:
    """Find programs for CUDA that never mention reduced precision."""
    text = program.file.text
    managed = (
        "deepspeed" in text
        or "ccelerator" in text
        or "Trainer" in text
        or "precision" in text
        or "fabric" in text
    )
    if program.on_cuda and not program.mixed_precision and not managed and program.steps.loops:
        yield Hit(program.steps.loops[0], "no autocast, bfloat16, float16 or TF32 anywhere in the file")


rule = Rule(
    code="full-precision-step",
    title="Training runs in full float32",
    severity=Severity.INFO,
    advice="Try bfloat16 autocast, or at least torch.set_float32_matmul_precision('high').",
    optimization="autocast_bf16",
    page=__doc__,
    words=("cuda",),
    visits=(Visit(cst.Module, check),),
)
