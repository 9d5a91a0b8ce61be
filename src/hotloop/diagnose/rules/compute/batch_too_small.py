"""Most of the step is the fixed price of its operations, not work on the batch.

## What it does
Sets what does not grow with the batch (the optimizer's time, and the dispatch of each layer's forward and backward)
against the step. Given for batches of few samples only, micro-batches where gradients are accumulated, and with the
dispatch time of simple layers and operators, so that what it says is a lower estimate; below 15% of the step nothing is
said.

## Why it is slow
Python, the dispatcher and kernel launches take the same time for 1 sample as for 64.

## When it is fine
Where the batch size is part of the method. A larger one is another optimization problem, so `tune` tries it only when
allowed.

## Example
```python
loader = DataLoader(dataset, batch_size=1)
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=32)
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
- [Horace He, Making Deep Learning Go Brrrr From First Principles](https://horace.io/brrr_intro.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import MIDWAY, Cost, phase_cost, phase_share
from hotloop.diagnose.price.facts import batch_samples, micro_batches, trains
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase
from hotloop.model.program import ModuleFacts

LAYER_S = 50e-6
"""Forward and backward of a layer on one sample of four features: 29 us (ReLU), 58 us (Linear), 74 us (BatchNorm),
95 us (convolution), with one thread (torch 2.13)."""
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
"""40 us a time step, forward and backward, for an LSTM of 96 units and two samples: about a layer's price."""
OPERATOR_S = 6e-6
"""The same for an operator, where they were counted: forward and backward of a Linear are about ten."""
MIN_SHARE_TO_REPORT = 0.15
"""Share of the step: programs of 2 to 8 samples without this fault had 3 to 10% of it."""
FEW = 8
"""Samples. Published scripts for images and text start at 16; what has to go with fewer (volumes, detection) computes
so much for each that the fixed part is small."""
ACCUMULATED = (
    "Use larger micro-batches, as far as memory allows, and fewer of them: a step's samples stay the same."
)


def check(observation: Observation) -> Iterator[Symptom]:
    """Set the fixed part of the step against the whole."""
    if not trains(observation):
        return
    samples = batch_samples(observation)
    if samples is None:
        raise Abstain("the samples of a step")
    cost = phase_cost(observation, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
    num = micro_batches(observation)
    if samples / num > FEW or not cost.step_s:
        return
    fixed = _fixed_share(observation, cost.step_s, num)
    if fixed < MIN_SHARE_TO_REPORT:
        return
    reach = cost.share - cost.low
    whole = "step" if num == 1 else "backward pass"
    yield Symptom(
        evidence=f"{samples / num:.0f} samples a {whole}, and at least {fixed:.0%} of the step does not depend on "
        "their number",
        metric="step.samples_per_s",
        cost=Cost(fixed, max(0.0, fixed - reach), min(1.0, fixed + reach), cost.step_s),
        gain=Cost(fixed, 0.0, fixed, cost.step_s).gain(expected=MIDWAY),
        advice=None if num == 1 else ACCUMULATED,
    )


def _fixed_share(observation: Observation, step_s: float, num: int) -> float:
    """Return the share of the step that larger batches would spread over more samples.

    Args:
        observation: what was measured.
        step_s: the step.
        num: micro-batches of a step; with several the optimizer's time stays as it is.
    """
    layers = num * sum(_num_dispatches(root) for root in observation.program.roots if root.training)
    computing = phase_share(observation, Phase.FORWARD, Phase.BACKWARD)
    operators = observation.deep.operators if observation.deep else None
    fixed_s = max(layers * LAYER_S, operators.num * OPERATOR_S if operators else 0.0)
    optimizer = phase_share(observation, Phase.OPTIMIZER) if num == 1 else 0.0
    return min(computing, fixed_s / step_s) + optimizer


def _num_dispatches(root: ModuleFacts) -> int:
    """Return how often a layer is dispatched; a recurrent one is for each time step (dimension 1 of three)."""
    lengths = [shape[1] for shape in root.input_shapes if len(shape) == 3]
    length = max(lengths, default=1)
    return sum(num * (length if name in _RECURRENT else 1) for name, num in root.layer_counts.items())


rule = Rule(
    code="batch-too-small",
    title="The batch is too small to fill the step with work",
    advice="Use a larger batch, with the learning rate adapted to it.",
    page=__doc__ or "",
    check=check,
)
