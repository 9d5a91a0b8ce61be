"""A forward in training mode keeps a graph that no backward goes through.

## What it does
Watches the calls of the program's models for some steps, and whether a backward pass comes through their outputs. Where
the same model had the same batch before in the step, the whole call is the cost; else what its graph costs usually.

## Why it is slow
A second forward for a metric computes what the first one has computed. A forward for targets, or for a picture to be
shown, needs its result and no graph: keeping one costs memory, and bookkeeping in each operation.

## When it is fine
Outputs whose backward comes some steps later.

## Example
```python
loss = criterion(model(x), y)
loss.backward()
accuracy = (model(x).argmax(1) == y).float().mean()
```
Use instead:
```python
logits = model(x)
loss = criterion(logits, y)
loss.backward()
accuracy = (logits.detach().argmax(1) == y).float().mean()
```

## References
- [PyTorch, Locally disabling gradient computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disable-grad-doc)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import Cost, measured_step
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.memory.evaluation_with_gradients import LEAST, MOST, USUAL
from hotloop.model.deep import Forwards
from hotloop.model.observation import Observation, StepTime
from hotloop.model.quantities import average, duration, plain

OFTEN = 0.5
"""Calls a step; fewer are now and then."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take each line that calls a model in vain."""
    step = measured_step(observation)
    if observation.deep is None or observation.deep.forwards is None:
        raise Abstain("the calls of the models (a run without --no-deep and --full, and nothing compiled)")
    for one in observation.deep.forwards:
        if one.unused_per_step >= OFTEN:
            again = one.repeated_per_step >= OFTEN
            cost = _cost(one, step, again=again)
            yield Symptom(
                evidence=f"{plain(one.unused_per_step)} of {average(one.count_per_step, 'forward')} a step here keep "
                f"a graph that no backward goes through, {duration(one.unused_s)}"
                + ("; the model had the same batch before" if again else ""),
                path=one.path,
                line=one.line,
                cost=cost,
                gain=cost.gain(least=0.5),
            )


def _cost(one: Forwards, step: StepTime, *, again: bool) -> Cost:
    share = min(1.0, one.unused_s / step.whole_s)
    if again:
        return Cost(share, share * 0.7, min(1.0, share * 1.3), step.whole_s)
    return Cost(share * USUAL, share * LEAST, share * MOST, step.whole_s)


rule = Rule(
    code="forward-without-backward",
    title="A forward keeps a graph that no backward goes through",
    advice="Use the output of the first forward again; where the result alone is wanted, call under torch.no_grad().",
    page=__doc__ or "",
    check=check,
)
