"""A tensor is built from a Python list of arrays or tensors.

## What it does
Finds `torch.tensor([...])` over a list of NumPy arrays or of tensors' items, in code that runs in each step:
a list comprehension, or a list that holds arrays.

## Why it is slow
Each element is unpacked to a Python number and converted by itself: a thousand times slower than one copy of
memory. torch itself warns of it.

## When it is fine
A few numbers.

## Example
```python
states = torch.tensor([np.asarray(s) for s in batch])
```
Use instead:
```python
states = torch.from_numpy(np.stack(batch))
```

## References
- [PyTorch, torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.read.syntax import method
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_MAKERS = words(
    """
    torch.tensor torch.FloatTensor torch.LongTensor torch.Tensor torch.as_tensor
    """
)
_ARRAYS = frozenset({Kind.NUMPY, Kind.TENSOR, Kind.HOST_TENSOR})


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find tensors made from lists of arrays."""
    if program.names.call(call) not in _MAKERS or not call.args:
        return
    if _holds_arrays(program, call.args[0].value) and program.steps.runs_each_step(call):
        yield Hit(call, "the list's arrays are converted number by number")


def _holds_arrays(program: Program, given: cst.BaseExpression) -> bool:
    if isinstance(given, cst.List):
        return any(program.values.kind(element.value) in _ARRAYS for element in given.elements)
    if not isinstance(given, cst.ListComp):
        return False
    element = given.elt
    return program.values.kind(element) in _ARRAYS or method(element) in {"numpy", "item"}


rule = Rule(
    code="tensor-from-list-in-step",
    title="A tensor is made from a list of arrays in each step",
    severity=Severity.WARNING,
    advice="Stack the arrays first: torch.from_numpy(np.stack(...)), or torch.stack for tensors.",
    holds_its_cost=True,
    page=__doc__,
    words=("ensor(",),
    visits=(Visit(cst.Call, check),),
)
