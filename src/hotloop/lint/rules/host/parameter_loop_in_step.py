"""A Python loop goes over all parameters in every step.

## What it does
Finds a `for` loop over `model.parameters()` (or `named_parameters()`) in code that runs in each training step
and does arithmetic on each parameter: weight averaging, clipping, noise, hand-written updates.

## Why it is slow
A few kernels are launched for each parameter: a model of 300 tensors costs a thousand tiny launches a step.
The `torch._foreach_*` operations and the library functions built on them do the same in a few.

## When it is fine
A model of a handful of parameters.

## Example
```python
for p, e in zip(model.parameters(), ema.parameters()):
    e.data.mul_(0.999).add_(p.data, alpha=0.001)
```
Use instead:
```python
torch._foreach_lerp_(list(ema.parameters()), list(model.parameters()), 0.001)
```

## References
- [PyTorch, torch.optim: foreach implementations](https://docs.pytorch.org/docs/stable/optim.html)
- PyTorch, torch.optim.swa_utils.AveragedModel:
  https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.read.syntax import method
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_LISTS = frozenset({"parameters", "named_parameters"})
_WORK = words(
    """
    add_ sub_ mul_ div_ copy_ lerp_ clamp_ zero_ norm addcmul_ addcdiv_ normal_
    """
)


def check(program: Program, loop: cst.For) -> Iterator[Hit]:
    """Find arithmetic over all parameters, one by one."""
    if not any(method(call) in _LISTS for call in program.file.under(loop.iter, cst.Call)):
        return
    works = any(method(call) in _WORK for call in program.file.under(loop.body, cst.Call))
    if works and program.steps.in_step_loop(loop):
        yield Hit(loop, "some kernels for each parameter, in each step")


rule = Rule(
    code="parameter-loop-in-step",
    title="A Python loop goes over all parameters in each step",
    severity=Severity.INFO,
    advice="Use torch._foreach_* operations, AveragedModel, or a fused optimizer.",
    optimization="fused_optimizer",
    holds_its_cost=True,
    page=__doc__,
    words=("parameters",),
    visits=(Visit(cst.For, check),),
)
