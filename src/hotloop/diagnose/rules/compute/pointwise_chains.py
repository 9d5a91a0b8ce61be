"""Pointwise operators take much of the step.

## What it does
Adds up the time of operators that compute each element by itself (activations, sums and products of tensors, their
backwards) on tensors of at least 64 KiB. It is information: how much of the step torch.compile could fuse.

## Why it is slow
Each reads its tensors from memory and writes its result back: four in a row move as much as sixteen tensors, where one
fused kernel moves two. Memory, not arithmetic, sets their time.

## When it is fine
It is how models are made: whether fusing them helps is for a trial to say.

## Example
```python
gate = torch.sigmoid(a) * torch.tanh(b) + c * d
```
Use instead:
```python
@torch.compile
def gate(a, b, c, d):
    return torch.sigmoid(a) * torch.tanh(b) + c * d
```

## References
- [PyTorch, Performance Tuning Guide: fuse pointwise operations](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import Cost, phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase
from hotloop.model.operators import Operator, largest_shares

_NAMES = frozenset(
    {
        "add", "sub", "rsub", "mul", "div", "neg", "abs", "exp", "log", "pow", "sqrt", "rsqrt", "square", "reciprocal",
        "sin", "cos", "erf", "sgn", "where", "clamp", "clamp_min", "clamp_max", "lerp", "addcmul", "addcdiv",
        "masked_fill", "relu", "threshold_backward", "sigmoid", "sigmoid_backward", "tanh", "tanh_backward",
        "gelu", "gelu_backward", "silu", "silu_backward", "mish", "mish_backward", "elu", "elu_backward",
        "softplus", "softplus_backward", "hardswish", "hardswish_backward", "leaky_relu", "leaky_relu_backward",
    }
)  # fmt: skip
LARGE = 1 << 14
"""Elements; of smaller tensors dispatching costs more than memory does (see many-tiny-operators)."""
LEAST = 0.05
"""Of the operators' time: programs without a fault had 1% to 38%."""
FUSED, FUSED_LEAST, FUSED_MOST = 0.2, 0.0, 0.75
"""What fusing takes away: of four operators in a row three quarters of the traffic, of a single one nothing."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Add them up."""
    operators = observation.deep.operators if observation.deep is not None else None
    if operators is None:
        raise Abstain("the operators of a step")
    found = [one for one in operators.operators if _is_pointwise(one)]
    share = sum(one.share for one in found)
    if share < LEAST:
        return
    usual = phase_cost(observation, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER).times(min(1.0, share))
    cost = Cost(usual.share, usual.low / 2, min(1.0, usual.high * 1.5), usual.step_s)
    yield Symptom(
        evidence=f"pointwise operators take {share:.0%} of the operators' time ({largest_shares(found)})",
        metric="deep.operators",
        cost=cost,
        gain=cost.gain(FUSED, FUSED_LEAST, FUSED_MOST),
        severity=Severity.INFO,
    )


def _is_pointwise(one: Operator) -> bool:
    name = one.name.removeprefix("aten::").removesuffix("_")
    return name in _NAMES and max((math.prod(shape) for shape in one.shapes), default=0) >= LARGE


rule = Rule(
    code="pointwise-chains",
    title="Pointwise operators take much of the step",
    advice="Let torch.compile fuse them; use the in-place or fused form of an activation.",
    optimization="compile",
    page=__doc__ or "",
    check=check,
)
