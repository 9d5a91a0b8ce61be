"""DDP looks at the graph anew in every step.

## What it does
Finds `DistributedDataParallel(...)` without `static_graph=True`, in a file where nothing speaks of unused
parameters.

## Why it is slow
With a static graph DDP orders its buckets once by the real order of the gradients, and can be combined with
checkpointing and no search for unused parameters: 5 to 10% of a step where communication shows.

## When it is fine
Models whose used parameters change from step to step. `hotloop tune` tries it only where the set is seen to
be constant.

## Example
```python
model = DistributedDataParallel(model)
```
Use instead:
```python
model = DistributedDataParallel(model, static_graph=True)
```

## References
- PyTorch, DistributedDataParallel:
  https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import has_star, keyword
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find DDP that may not assume the same graph in each step."""
    if program.names.call(call) != "torch.nn.parallel.DistributedDataParallel" or has_star(call):
        return
    if keyword(call, "static_graph") is None and keyword(call, "find_unused_parameters") is None:
        yield Hit(call, "static_graph is not given")


rule = Rule(
    code="graph-not-static",
    title="DDP does not know that the graph stays the same",
    severity=Severity.INFO,
    advice="Give static_graph=True where each step uses the same parameters.",
    page=__doc__,
    words=("DistributedDataParallel",),
    visits=(Visit(cst.Call, check),),
)
