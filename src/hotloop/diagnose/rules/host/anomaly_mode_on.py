"""Autograd's anomaly mode is on in the measured steps.

## What it does
Finds that anomaly detection was on in the training process. Its price is not measured by itself; the cost given is what
programs were seen to win without it, taken of this program's forward and backward.

## Why it is slow
Each operation of the forward stores the Python stack, and each result of the backward is searched for NaN.

## When it is fine
While you look for a NaN.

## Example
```python
torch.autograd.set_detect_anomaly(True)
```
Use instead:
```python
torch.autograd.set_detect_anomaly(args.debug)
```

## References
- [PyTorch, Anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
- [PyTorch, Performance Tuning Guide, Disable debugging APIs](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.cost import Cost, phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase

USUAL, LEAST, MOST = 0.47, 0.1, 0.7
"""Of forward and backward: 1.9x for an MLP, 1.3x for a convolutional net, 2.6x for a transformer, measured with one
thread (torch 2.13); 1.1x for a 3D U-Net, 3.0x for many small operations over rows, 3.4x at most."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Read the mode."""
    if not observation.program.anomaly_mode:
        return
    computing = phase_cost(observation, Phase.FORWARD, Phase.BACKWARD)
    cost = Cost(computing.share * USUAL, computing.low * LEAST, computing.high * MOST, computing.step_s)
    yield Symptom(
        evidence=f"anomaly detection is on, in forward and backward, which take {computing.share:.0%} of the step",
        metric="program.anomaly_mode",
        cost=cost,
        gain=cost.gain(least=1.0),  # the least is in the cost
    )


rule = Rule(
    code="anomaly-mode-on",
    title="Autograd's anomaly mode is on",
    advice="Switch torch.autograd.set_detect_anomaly off.",
    optimization="debug_apis_off",
    page=__doc__ or "",
    check=check,
)
