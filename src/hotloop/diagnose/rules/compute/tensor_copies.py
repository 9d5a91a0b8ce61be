"""Copies of tensors take much of the operators' time.

## What it does
Takes the share of the operators' time in `copy_`: changes of precision, of memory layout (`contiguous()`), clones. It
is a warning from a fifth of the step.

## Why it is slow
A copy computes nothing. Under autocast each weight is copied to the lower precision in every forward; a layout that one
layer wants and the next one does not is copied back and forth.

## When it is fine
Batches that are copied once; a gather of what is not in a row.

## Example
```python
x = x.permute(0, 2, 1).contiguous()  # in each layer
```
Use instead:
```python
x = x.transpose(1, 2)  # and a layer that takes strides as they are
```

## References
- [PyTorch, Channels last memory format](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import MIDWAY, phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase

_COPIES = frozenset({"aten::copy_", "aten::_foreach_copy_"})
_COMPUTING = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.OTHER)
MIN_SHARE_TO_REPORT = 0.2
"""Share of the step: 18 programs without a fault spent 0 to 10% in copies, a convolutional net under DDP the most."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the copies' share of the operators' time, and that of the phases in which operators run."""
    operators = observation.deep.operators if observation.deep is not None else None
    if operators is None:
        raise Abstain("the operators of a step")
    copies = [one for one in operators.operators if one.name in _COPIES]
    if not copies:
        return
    cost = phase_cost(observation, *_COMPUTING).times(min(1.0, sum(one.share for one in copies)))
    largest = max(copies, key=lambda one: one.share)
    shapes = " ".join("x".join(map(str, shape)) for shape in largest.shapes[:1])
    yield Symptom(
        evidence=(
            f"{sum(one.count for one in copies):,.0f} copies a step take {cost.share:.0%} of it"
            + (f", most of it those of {shapes}" if shapes else "")
        ),
        metric="deep.operators",
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
        severity=None if cost.share >= MIN_SHARE_TO_REPORT else Severity.INFO,
    )


rule = Rule(
    code="tensor-copies",
    title="Copies of tensors take much of the step",
    advice="Keep one precision and one memory layout from layer to layer; copy once what does not change.",
    page=__doc__ or "",
    check=check,
)
