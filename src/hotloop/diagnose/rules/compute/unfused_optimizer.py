"""The optimizer updates parameters one by one, or in lists, where one fused kernel would do.

## What it does
Finds an optimizer that has a fused implementation and does not use it, and takes its share of the step.

## Why it is slow
Each parameter takes about ten small operations, each reading and writing all of it; the fused implementation reads
and writes it once.

## When it is fine
Sparse gradients and closures the fused implementation refuses. Where the optimizer takes less than 15% of the step it
is information: that is usual with torch's default.

## Example
```python
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
```
Use instead:
```python
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
```

## References
- [PyTorch, torch.optim, choosing an implementation](https://docs.pytorch.org/docs/stable/optim.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.hot_line import in_hook, sampled_part
from hotloop.diagnose.price.cost import phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration

USUAL, LEAST, MOST = 0.8, 0.6, 0.97
"""Of the optimizer's time: fused took 3.3 (SGD with momentum), 5.9 (AdamW) and 6.0 (Adam) times less with 8 parameters
of 512 x 512, 5 to 40 times less with 60 of 64 x 64 (torch 2.13, one thread)."""


MUCH = 0.15
"""Of the step: published programs with torch's default optimizers had 6 to 14% of small models' steps in them."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time of optimizers that could be fused."""
    slow = [one for one in observation.program.optimizers if one.supports_fused and not one.fused]
    if not slow:
        return
    part = phase_cost(observation, Phase.OPTIMIZER)
    # Several optimizers share the phase; by parameters is the best that is known of how.
    everything = sum(one.num_parameters for one in observation.program.optimizers)
    ours = sum(one.num_parameters for one in slow) / everything if everything else 1.0
    first = max(slow, key=lambda one: one.num_parameters)
    how = "a list at a time (foreach)" if first.foreach else "without fused=True"
    part = part.times(ours * (1.0 - sampled_part(observation, in_hook, Phase.OPTIMIZER)))
    yield Symptom(
        evidence=f"{first.cls} runs {how}, and takes {part.share:.0%} of the step ({duration(part.seconds[0])})",
        metric="phases.optimizer.share",
        path=first.path,
        line=first.line,
        cost=part.times(USUAL),
        gain=part.gain(USUAL, LEAST, MOST),
        severity=Severity.INFO if part.share < MUCH else None,
    )


rule = Rule(
    code="unfused-optimizer",
    title="The optimizer is not fused",
    advice="Pass fused=True to the optimizer.",
    optimization="fused_optimizer",
    page=__doc__ or "",
    check=check,
)
