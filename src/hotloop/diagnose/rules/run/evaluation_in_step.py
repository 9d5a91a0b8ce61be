"""A forward without gradients runs in every training step.

## What it does
Finds evaluation forwards in the step's rhythm, and takes their time: what is computed of their results is not in it. A
method may need them, so this is information.

## Why it is slow
The validation set, or a second model, is computed in each step. What a model with fixed weights gives for a sample
is the same in every epoch.

## When it is fine
A target network, and a teacher or a trunk whose inputs are augmented anew: then it is part of the method. A program
that acts in environments (it imports `gymnasium` or `gym`) is left out.

## Example
```python
for x, y in loader:
    train(x, y)
    accuracy = evaluate(model, validation)
```
Use instead:
```python
    if step % 1000 == 0:
        accuracy = evaluate(model, validation)
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.sampled_line import during, sampled_line
from hotloop.diagnose.price.cost import MIDWAY, evaluated_share, measured_step, phase_cost, phase_share
from hotloop.diagnose.price.facts import trains
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase


def check(observation: Observation) -> Iterator[Symptom]:
    """Look for evaluation in the rhythm."""
    step = measured_step(observation)
    evaluated, forward = evaluated_share(observation), phase_share(observation, Phase.FORWARD)
    if observation.program.simulators or not trains(observation) or not evaluated or not forward:
        return
    cost = phase_cost(observation, Phase.FORWARD).times(min(1.0, evaluated / forward))
    path, line = sampled_line(observation, during("evaluation"))
    yield Symptom(
        evidence=f"the step's rhythm is {' '.join(step.rhythm)}; {cost.share:.0%} of it is forwards without gradients",
        metric="step.rhythm",
        path=path,
        line=line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
        severity=Severity.INFO,
    )


rule = Rule(
    code="evaluation-in-step",
    title="A forward without gradients runs in every step",
    advice="Compute what a frozen model gives (a trunk, a teacher) once for the whole data set; score every N steps.",
    page=__doc__ or "",
    check=check,
)
