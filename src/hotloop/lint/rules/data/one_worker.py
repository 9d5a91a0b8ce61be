"""One loader worker has to keep up with the device alone.

## What it does
Finds a `DataLoader` for training with `num_workers=1`.

## Why it is slow
One worker overlaps loading with the step, but it must make each batch in less time than a step takes. A
second one doubles the rate for the price of one process.

## When it is fine
The worker keeps up, or there is only one core to spare. `hotloop diagnose` measures the loader's rate at each
number of workers.

## Example
```python
loader = DataLoader(dataset, shuffle=True, num_workers=1)
```
Use instead:
```python
loader = DataLoader(dataset, shuffle=True, num_workers=4)
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument, is_literal
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find training loaders with exactly one worker."""
    if program.names.call(call) != "torch.utils.data.DataLoader" or not program.is_training_loader(call):
        return
    if is_literal(argument(call, 5, "num_workers"), "1"):
        yield Hit(call, "num_workers is 1")


rule = Rule(
    code="one-worker",
    title="A single loader worker feeds the training",
    severity=Severity.INFO,
    advice="Try two or more workers and keep the smallest number that helps.",
    optimization="loader_workers",
    page=__doc__,
    words=("num_workers",),
    visits=(Visit(cst.Call, check),),
)
