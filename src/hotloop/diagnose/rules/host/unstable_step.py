"""Steps differ much in how long they take.

## What it does
Compares the 95th percentile of the step with its median. The cause is not measured, so this is information.

## Why it is slow
A step that is now and then much longer is a pause: the garbage collector, a neighbour on the machine, throttling, a
batch of another size, a queue that ran empty.

## When it is fine
Batches whose sizes differ by design.

## Example
```python
gc.set_threshold(700, 10, 10)  # a full collection in the middle of steps
```
Use instead:
```python
gc.freeze()  # after set-up: what lives on is not searched again
```

## References
- [Python, gc.freeze](https://docs.python.org/3/library/gc.html#gc.freeze)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import measured_step
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

WIDE = 1.5
"""The same program varies by 5 to 15% on a quiet machine: a twentieth of the steps 50% above the median is more."""
MIN_STEPS = 20
"""A 95th percentile of fewer steps is their maximum."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare percentiles."""
    step = measured_step(observation)
    if step.num < MIN_STEPS:
        raise Abstain(f"{MIN_STEPS} steps ({step.num} were measured)")
    if step.p95_s > WIDE * step.p50_s:
        yield Symptom(
            evidence=f"one step in twenty takes {step.p95_s / step.p50_s:.1f} times the median of "
            f"{duration(step.p50_s)} or more",
            metric="step.p95_s",
            severity=Severity.INFO,
        )


rule = Rule(
    code="unstable-step",
    title="Steps differ much in how long they take",
    advice="Run hotloop machine to see what else uses this machine; look at batch sizes and at what runs now and then.",
    made_by_neighbours=True,
    page=__doc__ or "",
    check=check,
)
