"""Much of the step is in none of the loop's phases.

## What it does
Takes the share of the step that is neither data, copies, forward, backward, communication nor the optimizer: the
program's own code between them, spread over several lines; where one holds it, hot-line-outside-phases names that.
So is what happens between some steps only and has no name: plots, simulation, saving by hand.

## Why it is slow
Logging, metrics, moving averages, printing and waiting for values run while the device has nothing queued.

## When it is fine
Programs whose work is outside the model by design; the steps of an environment that it acts in are left out. Below 10%
of the step it is information: gradient clipping and schedules are in this share, too; so it is where the code of a
framework (Lightning, the Hugging Face Trainer) takes four fifths of it. The rule says nothing where data, model or
optimizer could not be seen.

## Example
```python
optimizer.step()
history.append(compute_metrics(model))  # in each step
```
Use instead:
```python
optimizer.step()
if step % 100 == 0:
    history.append(compute_metrics(model))
```

## References
- [PyTorch, Performance Tuning Guide, Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.acting import acting_share
from hotloop.diagnose.lines.hot_line import sampled_part
from hotloop.diagnose.price.cost import MIDWAY, between_steps, phase_cost, phase_share
from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.boundaries import waits_for_workers
from hotloop.model.deep import HostSamples, Sample
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration, listed

_HIDDEN = {
    "data": "a DataLoader",
    "forward": "a model that is called as a whole",
    "optimizer": "an optimizer object",
}
FRAMEWORKS = ("transformers", "accelerate", "lightning", "pytorch_lightning")
USUAL = 0.1
"""What belongs to training and is in no phase stays below: clipping gradients took 5 to 6% of the step of a small LSTM,
one thread (torch 2.13)."""

MOSTLY = 0.8
"""Of what is in no phase: that is how the framework is made, and no line of the program's."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take what is in no phase."""
    hidden = [_HIDDEN[gap.what] for gap in observation.coverage if gap.what in _HIDDEN]
    if hidden:
        raise Abstain(f"{listed(hidden)} in the step: without it its time cannot be told from the rest")
    needless = 1.0 - acting_share(observation)
    cost = phase_cost(observation, Phase.OTHER).times(_unnamed(observation) * needless)
    small = cost.share < USUAL or sampled_part(observation, _is_frameworks, Phase.OTHER) >= MOSTLY
    yield Symptom(
        evidence=f"{cost.share:.0%} of the step ({duration(cost.seconds[0])}) is in none of its phases",
        metric="phases.other.share",
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
        severity=Severity.INFO if small else None,
    )
    yield from _now_and_then(observation)


def _now_and_then(observation: Observation) -> Iterator[Symptom]:
    """Take what happens between some steps and has no name."""
    loader = step_loader(observation)
    spent_s = observation.run.parts.get("irregular_step_s", 0.0)
    if not spent_s or (loader is not None and waits_for_workers(observation, loader)):
        return
    cost = between_steps(observation, spent_s * (1.0 - acting_share(observation)))
    if cost.share >= USUAL:
        yield Symptom(
            evidence=f"{cost.share:.0%} of the loop lies between steps now and then, and has no name",
            metric="run.parts.irregular_step_s",
            cost=cost,
            gain=cost.gain(expected=MIDWAY),
        )


def _is_frameworks(host: HostSamples, sample: Sample) -> bool:
    """Whether a framework was called from the innermost line of the user's: no callback of theirs is."""
    frames = [host.frames[number] for number in sample.stack]
    below = itertools.takewhile(lambda frame: frame.owner != "user", reversed(frames))
    return any(name in Path(frame.path).parts for frame in below for name in FRAMEWORKS)


def _unnamed(observation: Observation) -> float:
    """Return the fraction of the rest that has no name: saving, logging and evaluation are other rules' matter."""
    rest = phase_share(observation, Phase.OTHER)
    return max(0.0, 1.0 - sum(part.share for part in observation.other.values()) / rest) if rest else 0.0


rule = Rule(
    code="loop-outside-phases",
    title="The loop spends its time outside the phases",
    advice="Look at what runs between the end of a step and the next batch: log, measure and save every N steps.",
    page=__doc__ or "",
    check=check,
)
