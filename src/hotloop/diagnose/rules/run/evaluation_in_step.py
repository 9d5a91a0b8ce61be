"""A forward without gradients runs in every training step.

## What it does
Finds evaluation forwards in the step's rhythm, and takes their time: what is computed of their results is not in it. A
method may need them, so this is information.

## Why it is slow
The validation set, or a second model, is computed in each step.

## When it is fine
Distillation, a target network, a teacher: then it is part of the method. A program that acts in environments (it
imports `gymnasium` or `gym`) is left out.

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
from hotloop.diagnose.price.cost import MIDWAY, measured_step, phase_cost, phase_share
from hotloop.diagnose.price.facts import trains
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase


def check(observation: Observation) -> Iterator[Symptom]:
    """Look for evaluation in the rhythm."""
    step = measured_step(observation)
    if (
        observation.program.simulators
        or not trains(observation)
        or not any("evaluate" in part for part in step.rhythm)
    ):
        return
    cost = phase_cost(observation, Phase.OTHER)
    evaluated, rest = observation.other.get("evaluate"), phase_share(observation, Phase.OTHER)
    if evaluated is not None and rest:
        cost = cost.times(min(1.0, evaluated.share / rest))
    path, line = sampled_line(observation, during("evaluation"))
    yield Symptom(
        evidence=f"the step's rhythm is {' '.join(step.rhythm)}; {cost.share:.0%} of it is evaluation",
        metric="step.rhythm",
        path=path,
        line=line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
        severity=Severity.INFO,
    )


rule = Rule(
    code="evaluation-in-step",
    title="An evaluation forward runs in every step",
    advice="Evaluate every N steps, or once per epoch.",
    page=__doc__ or "",
    check=check,
)
