"""The step waits for copies between host and device.

## What it does
Takes the share of the step that the program spends in `.to()`, `.cuda()` and the like.

## Why it is slow
A blocking copy stops the host until the device has taken it, and the device until it has come.

## When it is fine
Below 5% of the step it is information.

## Example
```python
x, y = x.to("cuda"), y.to("cuda")
```
Use instead:
```python
x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)  # from a loader with pin_memory=True
```

## References
- [PyTorch, pinned memory and non-blocking copies](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.cost import phase_cost
from hotloop.diagnose.price.facts import on_cpu
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time of copies."""
    cost = phase_cost(observation, Phase.TRANSFER)
    if on_cpu(observation):
        return
    yield Symptom(
        evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) is copying to the device",
        metric="phases.transfer.share",
        cost=cost,
        gain=cost.gain(),
    )


rule = Rule(
    code="transfer-bound",
    title="The step waits for copies to the device",
    advice="Copy pinned batches with non_blocking=True; make on the device what is made for it.",
    optimization="pinned_memory",
    page=__doc__ or "",
    check=check,
)
