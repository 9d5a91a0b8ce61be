"""The garbage collector stops the training.

## What it does
Adds up the passes of Python's garbage collector over all objects, between the first step and the last; each is told by
the collector itself. Those over young objects alone take microseconds and are not counted.

## Why it is slow
A pass goes through every list, dictionary and object of the process, and nothing else runs meanwhile: with millions
of them (samples kept as Python objects) it takes seconds. `gc.collect()` in the loop makes one each time.

## When it is fine
A pass now and then that takes milliseconds.

## Example
```python
for batch in loader:
    train(batch)
    gc.collect()
```
Use instead:
```python
gc.collect()
gc.freeze()  # what is there before training is looked at no more
for batch in loader:
    train(batch)
```

## References
- [Python, gc.freeze](https://docs.python.org/3/library/gc.html#gc.freeze)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import between_steps
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time of the passes."""
    spent, num = observation.run.collection_s, observation.run.num_collections
    if spent is None or num is None:
        raise Abstain("the garbage collector's passes (an observation of this version)")
    if not num:
        return
    cost = between_steps(observation, spent)
    yield Symptom(
        evidence=f"{num:,} passes over all objects took {duration(spent)}, {cost.share:.0%} of the loop, "
        f"{duration(spent / num)} each",
        metric="run.collection_s",
        cost=cost,
        gain=cost.gain(expected=0.9, least=0.5),
    )


rule = Rule(
    code="garbage-collected-in-step",
    title="The garbage collector stops the training",
    advice="Call gc.freeze() before the loop and keep data in arrays, not in Python objects; "
    "if the loop calls gc.collect(), take that out.",
    page=__doc__ or "",
    check=check,
)
