"""A data set keeps many small Python objects, and every worker comes to hold its own copy.

## What it does
Finds a data set that stores what `json.load`, `pickle.load` or `.to_dict("records")` gives, in a file that
gives its loaders workers.

## Why it is slow
Forked workers share memory until a page is written. Reading a Python object writes its reference count, so
the pages are copied one by one: host memory grows through the epoch to (1 + workers) times the data set.

## When it is fine
The annotations are small.

## Example
```python
self.items = json.load(open(path))
```
Use instead:
```python
self.items = np.array([json.dumps(x) for x in json.load(open(path))])     # one buffer, no reference counts
```

## References
- PyTorch issue 13246, DataLoader num_workers > 0 causes memory of the parent to be copied:
  https://github.com/pytorch/pytorch/issues/13246
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.datasets import dataset_class
from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import integer, keyword, method
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_LOADS = frozenset({"json.load", "json.loads", "pickle.load", "yaml.safe_load"})


def check(program: Program, assign: cst.Assign) -> Iterator[Hit]:
    """Find attributes of data sets that hold deserialized Python objects."""
    name = dotted(assign.targets[0].target) or ""
    value = assign.value
    if (
        not name.startswith("self.")
        or not isinstance(value, cst.Call)
        or dataset_class(program, assign) is None
    ):
        return
    if program.names.call(value) not in _LOADS and method(value) != "to_dict":
        return
    if any(
        integer(workers) != 0 for loader in program.loaders if (workers := keyword(loader, "num_workers"))
    ):
        yield Hit(assign, f"{name} holds Python objects that each worker will copy")


rule = Rule(
    code="python-objects-per-worker",
    title="Each worker comes to hold a copy of the data set",
    severity=Severity.INFO,
    advice="Keep annotations in NumPy arrays, tensors or Arrow tables.",
    page=__doc__,
    words=("Dataset",),
    visits=(Visit(cst.Assign, check),),
)
