"""The optimizer updates parameters one by one, or in lists, where one fused kernel would do.

## What it does
Finds an optimizer that has a fused implementation and does not use it, and takes its share of the step. What fusing
saves is measured: the optimizer steps on copies of its parameters, as it is and fused.

## Why it is slow
Each parameter takes about ten small operations, each reading and writing all of it; the fused implementation reads
and writes it once.

## When it is fine
Sparse gradients and closures the fused implementation refuses. Plain SGD over few small parameters is often as quick
without: then nothing is found. Where the optimizer takes less than 15% of the step it is information: that is usual
with torch's default.

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

from collections.abc import Iterator, Sequence

from hotloop.diagnose.lines.hot_line import in_hook, sampled_part
from hotloop.diagnose.price.cost import LEAST, phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase
from hotloop.model.program import OptimizerFacts
from hotloop.model.quantities import duration

REACH = 0.25
"""Of what is saved, up and down: parameters that the backward has just written are in other caches than copies are (8
optimizers, SGD and AdamW, 40,000 to 1.6 million parameters: within a quarter of the live optimizer's)."""
MIN_SHARE_TO_REPORT = 0.15
"""Share of the step: published programs with torch's default optimizers had 6 to 14% of small models' steps in them."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time of optimizers that could be fused, and what of it that saves."""
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
    saved = _saved(observation, slow)
    if saved is not None and part.share * saved < LEAST:
        return
    told = (
        "fusing it was not tried"
        if saved is None
        else f"fused, copies of it take {1 / (1 - saved):.1f} times less"
    )
    seen = f"takes {part.share:.0%} of the step ({duration(part.seconds[0])})"
    yield Symptom(
        evidence=f"{first.cls} runs {how}, and {seen}; {told}",
        metric="phases.optimizer.share",
        path=first.path,
        line=first.line,
        cost=part if saved is None else part.times(saved),
        gain=None
        if saved is None
        else part.gain(saved, saved * (1.0 - REACH), min(1.0, saved * (1.0 + REACH))),
        severity=Severity.INFO if part.share < MIN_SHARE_TO_REPORT else None,
    )


def _saved(observation: Observation, slow: Sequence[OptimizerFacts]) -> float | None:
    """Return the fraction of these optimizers' time that fusing saves; None: it was not tried."""
    tried = (observation.deep and observation.deep.optimizers) or ()
    times = {(one.cls, one.num_parameters): one for one in tried}
    mine = [times.get((one.cls, one.num_parameters)) for one in slow]
    known = [one for one in mine if one is not None]
    if not known:
        return None
    return max(0.0, 1.0 - sum(one.fused_s for one in known) / sum(one.now_s for one in known))


rule = Rule(
    code="unfused-optimizer",
    title="The optimizer is not fused",
    advice="Pass fused=True to the optimizer.",
    optimization="fused_optimizer",
    page=__doc__ or "",
    check=check,
)
