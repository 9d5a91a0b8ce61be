"""Gradients travel in small parcels.

## What it does
Finds `DistributedDataParallel(..., bucket_cap_mb=n)` with a literal below the default of 25.

## Why it is slow
Each bucket is a collective of its own, which costs the latency of the link however small it is.

## When it is fine
Small buckets were measured to overlap better on this network.

## Example
```python
model = DistributedDataParallel(model, bucket_cap_mb=1)
```
Use instead:
```python
model = DistributedDataParallel(model)
```

## References
- PyTorch, DistributedDataParallel:
  https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import integer, keyword
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import without_argument

_DEFAULT_MB = 25  # torch.nn.parallel.DistributedDataParallel's own default


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find bucket sizes below the default."""
    size = integer(keyword(call, "bucket_cap_mb"))
    if program.names.call(call) != "torch.nn.parallel.DistributedDataParallel" or size is None:
        return
    if size < _DEFAULT_MB:
        yield Hit(
            call, f"bucket_cap_mb is {size}", edits=(Edit(call, without_argument(call, "bucket_cap_mb")),)
        )


rule = Rule(
    code="small-buckets",
    title="Gradients are reduced in small buckets",
    severity=Severity.INFO,
    advice="Leave bucket_cap_mb at its default, or measure.",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=("bucket_cap_mb",),
    visits=(Visit(cst.Call, check),),
)
