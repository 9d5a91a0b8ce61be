"""The model computes in float64.

## What it does
Finds parameters in float64 and takes forward, backward and optimizer, of which about half is the price of the second
half of the bits.

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

from hotloop.diagnose.price.cost import Cost, phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase

USUAL, LEAST, MOST = 0.5, 0.3, 0.7
"""Of forward, backward and optimizer: a perceptron's step took 2.3 times as long as in float32, that of a convolutional
autoencoder 2.0 and of 1D convolutions 1.7 times (torch 2.13, one thread, a machine that was not quiet)."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Read the types of the parameters."""
    roots = [root for root in observation.program.roots if root.training and root.num_parameters]
    wide = sum(root.num_parameters for root in roots if "float64" in root.dtypes)
    if not wide:
        return
    computing = phase_cost(observation, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
    computing = computing.times(wide / sum(root.num_parameters for root in roots))
    cost = Cost(computing.share * USUAL, computing.low * LEAST, computing.high * MOST, computing.step_s)
    yield Symptom(
        evidence=f"{wide:,} parameters in float64, and {computing.share:.0%} of the step computes with them",
        metric="program.roots.dtypes",
        cost=cost,
        gain=cost.gain(least=1.0),  # the least is in the cost
    )


rule = Rule(
    code="double-precision",
    title="The model computes in float64",
    advice="Use float32 unless the problem needs float64.",
    page=__doc__ or "",
    check=check,
)
