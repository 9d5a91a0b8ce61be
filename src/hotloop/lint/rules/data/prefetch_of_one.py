"""Workers may be only one batch ahead.

## What it does
Finds a `DataLoader` with `prefetch_factor=1`.

## Why it is slow
A worker with one batch in its queue stops until that batch is taken: any slow sample is a wait for the
device. The default is 2.

## When it is fine
Host memory is scarce and batches are huge.

## Example
```python
loader = DataLoader(dataset, num_workers=4, prefetch_factor=1)
```
Use instead:
```python
loader = DataLoader(dataset, num_workers=4, prefetch_factor=4)
```

## References
- PyTorch, torch.utils.data.DataLoader:
  https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import integer, keyword
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find loaders that prefetch one batch for each worker."""
    if (
        program.names.call(call) == "torch.utils.data.DataLoader"
        and integer(keyword(call, "prefetch_factor")) == 1
    ):
        yield Hit(call, "prefetch_factor is 1")


rule = Rule(
    code="prefetch-of-one",
    title="Workers stop after one batch",
    severity=Severity.INFO,
    advice="Leave prefetch_factor at 2, or raise it for uneven samples.",
    optimization="loader_prefetch",
    page=__doc__,
    words=("prefetch_factor",),
    visits=(Visit(cst.Call, check),),
)
