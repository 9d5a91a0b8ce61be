"""The step is made of many tiny operators.

## What it does
Counts the operators of a step and takes what it costs to dispatch them, whatever they compute. It is a warning where
that is half of the step.

## Why it is slow
An operator costs some microseconds in Python and in torch before it computes anything; on a device a kernel launch,
too.

## When it is fine
Models that are small by design: it is information below half of the step.

## Example
```python
for parameter in model.parameters():
    parameter.data.mul_(1 - lr * decay)
```
Use instead:
```python
torch._foreach_mul_(list(model.parameters()), 1 - lr * decay)
```

## References
- [PyTorch, torch.compile](https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html)
- [PyTorch, CUDA graphs](https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import MIDWAY, Cost, measured_step
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

DISPATCH_S = 2e-6
"""`a.add_(b)` on one number took 1.1 us without and 3.4 us with autograd (torch 2.13, Zen 3 at 2.4 GHz)."""
MIN_SHARE_TO_REPORT = 0.5
"""Share of the step above which dispatching costs more than computing."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Price the number of operators."""
    step = measured_step(observation)
    operators = observation.deep.operators if observation.deep is not None else None
    if operators is None:
        raise Abstain("the operators of a step")
    share = min(1.0, operators.num * DISPATCH_S / step.whole_s)
    cost = Cost(share, share / 2, min(1.0, share * 2), step.whole_s)
    most = max(operators.operators, key=lambda one: one.count, default=None)
    named = "" if most is None else f", {most.count:,.0f} of them {most.name.removeprefix('aten::')}"
    yield Symptom(
        evidence=f"{operators.num:,.0f} operators in a step of {duration(step.whole_s)}{named}",
        metric="deep.operators.num",
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
        severity=None if share >= MIN_SHARE_TO_REPORT else Severity.INFO,
    )


rule = Rule(
    code="many-tiny-operators",
    title="The step is made of many tiny operators",
    advice="Let torch.compile fuse them, use the foreach form, or give each more to do.",
    optimization="compile",
    page=__doc__ or "",
    check=check,
)
