"""A sample is made pixel by pixel in Python.

## What it does
Finds nested `for ... in range(...)` loops that index an array with both counters, in a data set's
`__getitem__`.

## Why it is slow
The interpreter runs some ten million simple operations a second; NumPy or torch does the same element-wise
work a hundred times faster.

## When it is fine
The loops have a handful of turns.

## Example
```python
for y in range(h):
    for x in range(w):
        image[y, x] = image[y, x] / 255
```
Use instead:
```python
image = image / 255
```

## References
- [NumPy, Broadcasting](https://numpy.org/doc/stable/user/basics.broadcasting.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.datasets import in_getitem
from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, loop: cst.For) -> Iterator[Hit]:
    """Find nested counting loops that index element by element."""
    inner = [other for other in program.file.under(loop.body, cst.For) if _counts(other)]
    if not (_counts(loop) and inner and in_getitem(program, loop)):
        return
    counters = {_counter(loop), _counter(inner[0])}
    for subscript in program.file.under(inner[0].body, cst.Subscript):
        named = {name.value for index in subscript.slice for name in program.file.under(index, cst.Name)}
        if counters <= named:
            yield Hit(loop, "element-wise work in nested Python loops for each sample")
            return


def _counts(loop: cst.For) -> bool:
    call = loop.iter
    return isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == "range"


def _counter(loop: cst.For) -> str:
    return loop.target.value if isinstance(loop.target, cst.Name) else ""


rule = Rule(
    code="python-loop-in-getitem",
    title="Samples are computed element by element in Python",
    severity=Severity.WARNING,
    advice="Write the loops as array operations.",
    holds_its_cost=True,
    page=__doc__,
    words=("__getitem__",),
    visits=(Visit(cst.For, check),),
)
