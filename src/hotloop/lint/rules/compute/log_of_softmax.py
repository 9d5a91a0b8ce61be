"""The logarithm of a softmax is taken in two steps.

## What it does
Finds `torch.log(softmax(...))` and `softmax(...).log()`.

## Why it is slow
Two passes over the logits instead of one, an intermediate kept for the backward pass, and infinities where a
probability underflows.

## When it is fine
Never in training; the probabilities may be needed for something else as well.

## Example
```python
loss = -torch.log(F.softmax(logits, dim=1))[range(n), target].mean()
```
Use instead:
```python
loss = F.cross_entropy(logits, target)
```

## References
- [PyTorch, log_softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method, receiver
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_SOFTMAX = frozenset({"torch.softmax", "torch.nn.functional.softmax"})


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find logarithms whose argument is a softmax."""
    inner: cst.CSTNode | None = None
    if program.names.call(call) == "torch.log" and call.args:
        inner = call.args[0].value
    elif method(call) == "log" and not program.names.call(call):
        inner = receiver(call)
    if isinstance(inner, cst.Call) and _is_softmax(program, inner):
        yield Hit(call, "log of softmax")


def _is_softmax(program: Program, call: cst.Call) -> bool:
    full = program.names.call(call)
    return full in _SOFTMAX if full else method(call) == "softmax"


rule = Rule(
    code="log-of-softmax",
    title="The logarithm of a softmax is taken in two steps",
    severity=Severity.WARNING,
    advice="Use log_softmax, or cross_entropy on the logits.",
    page=__doc__,
    words=("softmax",),
    visits=(Visit(cst.Call, check),),
)
