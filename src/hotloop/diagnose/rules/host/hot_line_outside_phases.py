"""One line holds most of the time that the step spends outside its phases.

## What it does
Samples the Python stacks of the training thread. Of the samples that lie in no phase of the loop, takes the innermost
line of the program under which half of them or more are found.

## Why it is slow
What runs between the optimizer and the next batch runs alone: the device, and the loader's queue, wait for it.

## When it is fine
Below 10% of the step it is information: clipping gradients is in this share, too; below 15% where no DataLoader makes
the batches, since making them by hand is in it then. The rule says nothing where model or optimizer could not be seen.

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
from hotloop.diagnose.cost import MIDWAY, Cost, between_steps, phase_cost, phase_share
from hotloop.diagnose.hot_line import HotLine, hot_line, samples_of
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.host.loop_outside_phases import USUAL
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase

_HIDDEN = ("forward", "optimizer")
MAKING = 0.15
"""What making batches by hand may take, where no loader does."""
SURPLUS = 0.1
"""Of the samples: so much more lies outside the phases than in the regular steps where something comes now and then."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Name the line."""
    unseen = {gap.what for gap in observation.coverage}
    if unseen.intersection(_HIDDEN):
        raise Abstain("model and optimizer in the step: what was not seen cannot be told from the rest")
    host, own = samples_of(observation, "train")
    outside = [one for one in own if one.phase == Phase.OTHER.value]
    found = hot_line(host, outside, own)
    if found is None:
        return
    sampled = sum(one.spent_s for one in outside) / sum(one.spent_s for one in own)
    cost, of_what = _cost(observation, found, sampled)
    usual = MAKING if "data" in unseen else USUAL
    yield Symptom(
        evidence=f"{cost.share:.0%} of the {of_what} ({cost.seconds[0] * 1e3:.3g} ms a step) is spent under this line, "
        "in none of its phases",
        path=found.path,
        line=found.line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
        severity=Severity.INFO if cost.share < usual else None,
    )


def _cost(observation: Observation, found: HotLine, sampled: float) -> tuple[Cost, str]:
    """Return what the line costs, and of what: of the regular steps, or of the loop where it comes now and then.

    Args:
        observation: what was measured.
        found: the line, with its share of the samples outside the phases.
        sampled: the share of all samples that lie outside the phases.
    """
    step = phase_cost(observation, Phase.OTHER).times(_sampled(observation))
    rare = between_steps(observation, sum(observation.run.parts.get(name, 0.0) for name in _RARE))
    if sampled - step.share < SURPLUS or rare.share < SURPLUS:
        return Cost(
            step.share * found.share, step.low * found.low, step.high * found.high, step.step_s
        ), "step"
    most = rare.share + step.share * (1.0 - rare.share)
    share = min(sampled, most)
    return Cost(share * found.share, share * found.low, share * found.high, rare.step_s), "loop"


_RARE = ("irregular_step_s", "evaluation_s")
"""Parts of the run that hold what the program does in some steps only."""


def _sampled(observation: Observation) -> float:
    """Return the fraction of the rest that the samples are of: evaluating and saving are phases of their own there."""
    rest = phase_share(observation, Phase.OTHER)
    aside = sum(
        observation.other[name].share for name in ("evaluate", "checkpoint") if name in observation.other
    )
    return max(0.0, 1.0 - aside / rest) if rest else 1.0


rule = Rule(
    code="hot-line-outside-phases",
    title="One line holds the step up outside its phases",
    advice="Run it every N steps, move it out of the loop, or do it with tensors instead of a Python loop.",
    explains=frozenset({"loop-outside-phases", "many-tiny-operators"}),
    page=__doc__ or "",
    check=check,
)
