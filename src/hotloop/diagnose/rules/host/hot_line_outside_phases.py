"""One line holds most of the time that the step spends outside its phases.

## What it does
Samples the Python stacks of the training thread. Of the samples that lie in no phase of the loop, takes the innermost
line of the program under which half of them or more are found.

## Why it is slow
What runs between the optimizer and the next batch runs alone: the device, and the loader's queue, wait for it.

## When it is fine
Below 10% of the step it is information: clipping gradients is in this share, too. The rule says nothing where data,
model or optimizer could not be seen, since their time is then in this share.

## Example
```python
history.append(compute_metrics(model))  # in each step
```
Use instead:
```python
if step % 100 == 0:
    history.append(compute_metrics(model))
```

## References
- [Python, faulthandler](https://docs.python.org/3/library/faulthandler.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.cost import MIDWAY, Cost, phase_cost, phase_share
from hotloop.diagnose.hot_line import hot_line, samples_of
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.host.loop_outside_phases import USUAL
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase

_HIDDEN = ("data", "forward", "optimizer")


def check(observation: Observation) -> Iterator[Symptom]:
    """Name the line."""
    if any(gap.what in _HIDDEN for gap in observation.coverage):
        raise Abstain("all phases of the step: what was not seen cannot be told from the rest")
    host, own = samples_of(observation, "train")
    found = hot_line(host, [one for one in own if one.phase == Phase.OTHER.value], own)
    if found is None:
        return
    rest = phase_cost(observation, Phase.OTHER).times(_sampled(observation))
    cost = Cost(rest.share * found.share, rest.low * found.low, rest.high * found.high, rest.step_s)
    yield Symptom(
        evidence=f"{cost.share:.0%} of the step ({cost.seconds[0] * 1e3:.3g} ms) is spent under this line, in none of "
        "its phases",
        path=found.path,
        line=found.line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
        severity=Severity.INFO if cost.share < USUAL else None,
    )


def _sampled(observation: Observation) -> float:
    """Return the fraction of the rest that the samples are of: evaluation in the step is a phase of its own there."""
    rest, evaluated = phase_share(observation, Phase.OTHER), observation.other.get("evaluate")
    return max(0.0, 1.0 - evaluated.share / rest) if rest and evaluated else 1.0


rule = Rule(
    code="hot-line-outside-phases",
    title="One line holds the step up outside its phases",
    advice="Run it every N steps, move it out of the loop, or do it with tensors instead of a Python loop.",
    explains=frozenset({"loop-outside-phases"}),
    page=__doc__ or "",
    check=check,
)
