"""There are as many loader workers as cores.

## What it does
Finds `num_workers=os.cpu_count()` (or the multiprocessing form of it).

## Why it is slow
Every rank starts that many workers, beside the training process and its own threads. On a node with eight
ranks that is eight times the cores. Busy neighbours make OpenMP barriers in the training process wait: a
two-thread step was measured 5 to 25 times slower beside one busy process.

## When it is fine
A single training process whose work is all on the device, and a data set that needs every core. Containers
often report the host's cores rather than those they may use.

## Example
```python
loader = DataLoader(dataset, num_workers=os.cpu_count())
```
Use instead:
```python
loader = DataLoader(dataset, num_workers=4)
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_ALL_CORES = frozenset({"os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count"})


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find loaders with one worker for each core."""
    if program.names.call(call) != "torch.utils.data.DataLoader":
        return
    workers = argument(call, 5, "num_workers")
    if workers is not None and program.names.call(workers) in _ALL_CORES:
        yield Hit(call, "num_workers is the number of all cores of the machine")


rule = Rule(
    code="worker-on-every-core",
    title="The loader takes every core",
    severity=Severity.INFO,
    advice="Leave cores for the training process, and divide the rest between the ranks.",
    optimization="loader_workers",
    page=__doc__,
    words=("cpu_count",),
    visits=(Visit(cst.Call, check),),
)
