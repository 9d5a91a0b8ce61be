"""Evaluation takes much of the run.

## What it does
Takes the share of the loop that is evaluation, its data loading included. It is a warning from a quarter of the loop,
where a whole epoch and more than one evaluation were seen, or three; otherwise it is information.

## Why it is slow
Time in which nothing is learned.

## When it is fine
A pass over a validation set as large as the training set takes a quarter of an epoch: a forward is a third of a
training step. Less than that is usual.

## Example
```python
for x, y in loader:
    train(x, y)
    if step % 10 == 0:
        evaluate(model, validation)
```
Use instead:
```python
    if step % 1000 == 0:
        evaluate(model, validation)
```

## References
- [Kaplan et al. 2020, Scaling Laws for Neural Language Models: 2N FLOPs forward, 4N backward](https://arxiv.org/abs/2001.08361)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.sampled_line import during, sampled_line
from hotloop.diagnose.price.cost import MIDWAY, Cost, between_steps, recurs
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration

MIN_SHARE_TO_REPORT = 0.25
"""A forward is a third of a training step (Kaplan et al. 2020: 2N FLOPs against 6N), so an evaluation on as many
samples as were trained on takes a quarter of the loop."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time of evaluation."""
    spent = observation.run.parts.get("evaluation_s", 0.0)
    cost = between_steps(observation, spent)
    num = observation.run.num_evaluations
    sure = recurs(observation, num)
    where = "of the loop" if sure else "of what was seen of the loop, less than an epoch,"
    path, line = sampled_line(observation, during("evaluation"))
    yield Symptom(
        evidence=f"{cost.share:.0%} {where} is evaluation ({duration(spent)})",
        metric="run.parts.evaluation_s",
        path=path,
        line=line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
        severity=None
        if sure and num != 1 and cost.share >= MIN_SHARE_TO_REPORT and _scores(observation, cost)
        else Severity.INFO,
    )


def _scores(observation: Observation, cost: Cost) -> bool:
    """Whether it is the model that is evaluated, and not what the program makes of it (pictures, files)."""
    host = observation.deep.host if observation.deep else None
    own = [one for one in host.samples if one.process == "train"] if host else []
    scored = sum(one.spent_s for one in own if one.phase == "evaluation")
    around = sum(one.spent_s for one in own if one.phase == Phase.OTHER.value)
    return not scored or scored >= around or cost.share * sum(one.spent_s for one in own) < around


rule = Rule(
    code="frequent-evaluation",
    title="Evaluation takes much of the run",
    advice="Evaluate less often, on a part of the data, or under torch.inference_mode() with larger batches.",
    page=__doc__ or "",
    check=check,
)
