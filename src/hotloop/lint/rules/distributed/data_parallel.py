"""Several GPUs are driven by one process.

## What it does
Finds models that are wrapped in `torch.nn.DataParallel`, in files that do more than evaluate.

## Why it is slow
One Python process launches for all devices under one interpreter lock; in each step the model is copied to
every device, inputs are scattered from the first and outputs gathered on it.

## When it is fine
A quick look on a machine with one GPU, where it does nothing.

## Example
```python
model = nn.DataParallel(model)
```
Use instead:
```python
model = nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])
```

## References
- PyTorch, Performance Tuning Guide: use DistributedDataParallel:
  https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- PyTorch, CUDA semantics: use nn.parallel.DistributedDataParallel instead:
  https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-nn-ddp-instead
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find DataParallel."""
    only_infers = ".eval()" in program.file.text and not program.steps.backward_calls
    if program.names.call(call) == "torch.nn.DataParallel" and not only_infers:
        yield Hit(call, "DataParallel wraps the model")


rule = Rule(
    code="data-parallel",
    title="One process drives several GPUs",
    severity=Severity.WARNING,
    advice="Use DistributedDataParallel, one process for each GPU.",
    page=__doc__,
    words=("DataParallel",),
    visits=(Visit(cst.Call, check),),
)
