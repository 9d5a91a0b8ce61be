"""Training runs one sample at a time.

## What it does
Finds a `DataLoader` for training whose `batch_size` is 1, or not given, in a program for CUDA.

## Why it is slow
A step on one sample launches as many kernels as a step on sixty-four, and each leaves the device nearly
empty.

## When it is fine
Samples that fill the device by themselves (volumes, whole slides, graphs), data sets that give whole batches.
Changing the batch size changes the optimization problem.

## Example
```python
loader = DataLoader(dataset, shuffle=True)
```
Use instead:
```python
loader = DataLoader(dataset, shuffle=True, batch_size=32)
```

## References
- PyTorch, torch.utils.data.DataLoader:
  https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument, has_star, integer, keyword
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find training loaders with a batch of one."""
    if program.names.call(call) != "torch.utils.data.DataLoader" or has_star(call) or not program.on_cuda:
        return
    size = argument(call, 1, "batch_size")
    trains = keyword(call, "batch_sampler") is None and program.is_training_loader(call)
    if trains and (size is None or integer(size) == 1):
        yield Hit(call, "batch_size is 1" if size is not None else "batch_size is not given, so it is 1")


rule = Rule(
    code="batch-of-one",
    title="Training runs one sample at a time",
    severity=Severity.INFO,
    advice="Find the smallest batch on the throughput plateau.",
    page=__doc__,
    words=("DataLoader",),
    visits=(Visit(cst.Call, check),),
)
