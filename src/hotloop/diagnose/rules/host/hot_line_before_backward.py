"""One line of your own, between the model and the backward pass, takes much of the step.

## What it does
Takes the samples of the host's stacks between the end of the last step's model call and the backward pass that are
under no module, and finds the line that holds most of them. The backward of what the line puts into the graph counts,
and so does how much of it all is the same few operations again and again: one call in place of them would save that.

## Why it is slow
A loop in Python over rows, values read one by one, a loss put together from many small operations: each of them pays
for the interpreter, the dispatcher and autograd, where one operation on the whole batch would do.

## When it is fine
A loss that is large by nature: one operation on a large tensor. Such a line has nothing to save, and is not named.

## Example
```python
for row in output:
    penalty = penalty + (row - row.mean()).square().mean()
```
Use instead:
```python
penalty = (output - output.mean(1, keepdim=True)).square().mean(1).sum()
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.hot_line import calls_a_module, hot_line, samples_of
from hotloop.diagnose.lines.line_price import line_price
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.deep import HostSamples, Sample
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration

MIN_SHARE_TO_REPORT = 0.1
"""Share of the step: a functional loss and what belongs to it took less in programs without a fault."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Name the line."""
    host, own = samples_of(observation, "train")
    forward = [one for one in own if one.phase == Phase.FORWARD.value]
    found = hot_line(host, [one for one in forward if not _in_module(host, one)], own)
    if found is None:
        return
    price = line_price(observation, found.path, range(found.line, found.line + 1))
    if not price.worth_naming:
        return
    backward = price.cost.share - price.own.share
    yield Symptom(
        evidence=f"{price.own.share:.0%} of the step ({duration(price.own.seconds[0])}) is spent under this line, "
        f"between the model and the backward pass, and {backward:.0%} in the backward of what it computes",
        path=found.path,
        line=found.line,
        cost=price.cost,
        gain=price.gain,
        severity=Severity.INFO if price.own.share < MIN_SHARE_TO_REPORT else None,
    )


def _in_module(host: HostSamples, sample: Sample) -> bool:
    return any(calls_a_module(host.frames[number]) for number in sample.stack)


rule = Rule(
    code="hot-line-before-backward",
    title="One line between the model and the backward pass takes much of the step",
    advice="Compute it for the whole batch at once, every N steps only, or leave it out of the graph.",
    explains=frozenset({"many-tiny-operators"}),
    page=__doc__ or "",
    check=check,
)
