"""The model computes in float64.

## What it does
Finds models whose parameters are all in float64 and takes what of forward, backward and optimizer is arithmetic, about
half of which is the price of the second half of the bits. Calling an operator costs the same in both precisions.
Without the operators of the step (`--no-deep`) no gain is told.

## Why it is slow
Half as many numbers fit into a vector register, and twice as many bytes move. On most GPUs float64 runs at a
thirty-second or a sixty-fourth of the rate of float32.

## When it is fine
Physics and solvers that need it.

## Example
```python
torch.set_default_dtype(torch.float64)
```
Use instead:
```python
torch.set_default_dtype(torch.float32)
```

## References
- [PyTorch, torch.set_default_dtype](https://docs.pytorch.org/docs/stable/generated/torch.set_default_dtype.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.arithmetic import arithmetic_share
from hotloop.diagnose.price.cost import Cost, phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase

USUAL, LEAST, MOST = 0.5, 0.3, 0.7
"""Of arithmetic: a perceptron's step took 2.3 times as long as in float32, that of a convolutional
autoencoder 2.0 and of 1D convolutions 1.7 times (torch 2.13, one thread, a machine that was not quiet)."""
UNKNOWN = 0.5
"""The part of the computing that is arithmetic, where operators were not seen."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Read the types of the parameters."""
    roots = [root for root in observation.program.roots if root.training and root.num_parameters]
    wide = sum(root.num_parameters for root in roots if root.dtypes == ("float64",))
    if not wide:
        return
    computing = phase_cost(observation, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
    arithmetic = arithmetic_share(observation)
    part = wide / sum(root.num_parameters for root in roots) * (UNKNOWN if arithmetic is None else arithmetic)
    cost = Cost(
        computing.share * part * USUAL,
        computing.low * part * LEAST,
        computing.high * part * MOST,
        computing.step_s,
    )
    yield Symptom(
        evidence=f"{wide:,} parameters in float64, and {computing.share:.0%} of the step computes with them",
        metric="program.roots.dtypes",
        cost=cost,
        gain=None if arithmetic is None else cost.gain(least=1.0),  # the least is in the cost
    )


rule = Rule(
    code="double-precision",
    title="The model computes in float64",
    advice="Use float32 unless the problem needs float64.",
    page=__doc__ or "",
    check=check,
)
