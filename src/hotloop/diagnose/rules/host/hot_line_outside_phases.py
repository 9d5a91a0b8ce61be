"""One line holds most of the time that the step spends outside its phases.

## What it does
Samples the Python stacks of the training thread. Of the samples that lie in no phase of the loop, takes the innermost
line of the program under which half of them or more are found.

## Why it is slow
What runs between the optimizer and the next batch runs alone: the device, and the loader's queue, wait for it.

## When it is fine
Below 10% of the step it is information: clipping gradients is in this share, too; below 20% where no DataLoader makes
the batches, since making them by hand, or a simulator, is in it then. The rule says nothing where model or optimizer
could not be seen, nor of the steps of an environment that the program acts in. The same holds for lines of hooks that
the optimizer or the backward calls.

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
from hotloop.diagnose.lines.acting import acts, is_environments
from hotloop.diagnose.lines.hot_line import (
    MOST,
    HotLine,
    hot_line,
    in_hook,
    is_under,
    sampled_share,
    samples_of,
)
from hotloop.diagnose.price.cost import Cost, between_steps, measured_step, phase_cost, phase_share
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.host.loop_outside_phases import USUAL
from hotloop.model.deep import HostSamples, Sample
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration

_HIDDEN = ("forward", "optimizer")
_CALLING = (Phase.OPTIMIZER.value, Phase.BACKWARD.value)
MOSTLY = 0.8
"""Expected to go: metrics, logs and pictures lose nothing by coming every N steps."""
MAKING = 0.2
"""What making batches by hand, or a simulator's step, may take where no loader makes them."""
SURPLUS = 0.1
"""Of the samples: so much more lies outside the phases than in the regular steps where something comes now and then."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Name the line."""
    unseen = {gap.what for gap in observation.coverage}
    if unseen.intersection(_HIDDEN):
        raise Abstain("model and optimizer in the step: what was not seen cannot be told from the rest")
    host, own = samples_of(observation, "train")
    yield from _in_hooks(observation, host, own)
    outside = [one for one in own if one.phase == Phase.OTHER.value]
    found = hot_line(host, outside, own)
    if found is None or _acts_under(observation, host, own, found):
        return
    sampled = sum(one.spent_s for one in outside) / sum(one.spent_s for one in own)
    cost, of_what = _cost(observation, found, sampled)
    usual = MAKING if "data" in unseen else USUAL
    yield Symptom(
        evidence=f"{cost.share:.0%} of the {of_what} ({duration(cost.seconds[0])} a step) is spent under this line, "
        "in none of its phases",
        path=found.path,
        line=found.line,
        cost=cost,
        gain=cost.gain(expected=MOSTLY),
        severity=Severity.INFO if cost.share < usual else None,
    )


def _acts_under(observation: Observation, host: HostSamples, own: list[Sample], found: HotLine) -> bool:
    """Whether a line holds the rollouts of a program that acts in environments: it cannot come every N steps."""
    if not acts(observation):
        return False
    here = range(found.line, found.line + 1)
    under = [one for one in own if is_under(host, one, found.path, here)]
    if any(one.phase == "evaluation" for one in under):
        return True
    outside = [one for one in under if one.phase == Phase.OTHER.value]
    acting = sum(one.spent_s for one in outside if is_environments(host, one))
    return acting >= MOST * sum(one.spent_s for one in outside)


def _in_hooks(observation: Observation, host: HostSamples, own: list[Sample]) -> Iterator[Symptom]:
    """Name the line of a hook of the program's that the optimizer or the backward calls."""
    hooks = [one for one in own if one.phase in _CALLING and in_hook(host, one)]
    found = hot_line(host, hooks, own)
    if found is None:
        return
    share = found.share * sum(one.spent_s for one in hooks) / sum(one.spent_s for one in own)
    cost = sampled_share(share, sum(one.num for one in own), measured_step(observation).whole_s)
    yield Symptom(
        evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) is spent under this line, in code "
        f"of the program's that the {hooks[0].phase} calls",
        path=found.path,
        line=found.line,
        cost=cost,
        gain=cost.gain(expected=MOSTLY),
        severity=Severity.INFO if cost.share < USUAL else None,
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


_RARE = ("irregular_step_s", "evaluation_s", "rollout_s")
"""Parts of the run that hold what the program does in some steps only."""


def _sampled(observation: Observation) -> float:
    """Return the fraction of the rest that the samples are of: saving is a phase of its own there."""
    rest = phase_share(observation, Phase.OTHER)
    aside = observation.other["checkpoint"].share if "checkpoint" in observation.other else 0.0
    return max(0.0, 1.0 - aside / rest) if rest else 1.0


rule = Rule(
    code="hot-line-outside-phases",
    title="One line holds the step up outside its phases",
    advice="Run it every N steps, move it out of the loop, or do it with tensors instead of a Python loop.",
    explains=frozenset({"loop-outside-phases", "many-tiny-operators", "batch-too-small"}),
    page=__doc__ or "",
    check=check,
)
