"""Each gradient is copied into a bucket and back.

## What it does
Finds `DistributedDataParallel(...)` without `gradient_as_bucket_view=True`.

## Why it is slow
Gradients are copied into the communication buckets before the all-reduce and out of them after it, and both
copies take memory of the size of all gradients.

## When it is fine
Code that detaches or replaces `.grad`.

## Example
```python
model = DistributedDataParallel(model)
```
Use instead:
```python
model = DistributedDataParallel(model, gradient_as_bucket_view=True)
```

## References
- PyTorch, DistributedDataParallel:
  https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import has_star, is_literal, keyword
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import with_argument


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find DDP without bucket views."""
    if program.names.call(call) != "torch.nn.parallel.DistributedDataParallel" or has_star(call):
        return
    given = keyword(call, "gradient_as_bucket_view")
    if given is None or is_literal(given, "False"):
        edit = Edit(call, with_argument(call, "gradient_as_bucket_view", "True"))
        yield Hit(call, "gradient_as_bucket_view is not on", edits=(edit,))


rule = Rule(
    code="gradients-copied-to-buckets",
    title="Gradients are copied into communication buckets",
    severity=Severity.INFO,
    advice="Give gradient_as_bucket_view=True.",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=("DistributedDataParallel",),
    visits=(Visit(cst.Call, check),),
)
