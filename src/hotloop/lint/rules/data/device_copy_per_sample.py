"""Samples are moved to the device one by one, inside the data set.

## What it does
Finds `.cuda()` and `.to("cuda")` or `.to(device)` in a data set's `__getitem__`.

## Why it is slow
Each sample is a tiny transfer of its own; forked workers cannot use CUDA at all, so the loader has to stay in
the training process; and batches made on the device cannot be prefetched from pinned memory.

## When it is fine
The whole data set lives on the device already and nothing is copied.

## Example
```python
def __getitem__(self, i):
    return torch.tensor(self.x[i]).cuda()
```
Use instead:
```python
def __getitem__(self, i):
    return torch.tensor(self.x[i])     # the loop moves whole batches
```

## References
- PyTorch, Multi-process data loading:
  https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.datasets import in_getitem
from hotloop.lint.infer.moves import moves_to_device
from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find device copies in `__getitem__`."""
    if moves_to_device(call) and in_getitem(program, call):
        yield Hit(call, "one transfer for each sample")


rule = Rule(
    code="device-copy-per-sample",
    title="The data set moves single samples to the device",
    severity=Severity.WARNING,
    advice="Return host tensors; move the whole batch in the loop.",
    optimization="pinned_memory",
    holds_its_cost=True,
    page=__doc__,
    words=("__getitem__",),
    visits=(Visit(cst.Call, check),),
)
