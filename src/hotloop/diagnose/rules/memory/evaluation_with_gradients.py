"""Evaluation keeps a graph that no backward uses.

## What it does
Finds forwards of a model in evaluation mode, between training steps, with gradients switched on and no backward pass
after them. What gradients cost such a forward is not measured by itself; the gain given is what they cost usually. It
is a warning where such forwards take 5% of the loop.

## Why it is slow
Every activation is kept for a backward pass that never comes: memory as in training, and bookkeeping in each
operation.

## When it is fine
Gradients with respect to the input that are taken later.

## Example
```python
model.eval()
for x, y in validation:
    total += loss_fn(model(x), y).item()
```
Use instead:
```python
model.eval()
with torch.inference_mode():
    for x, y in validation:
        total += loss_fn(model(x), y).item()
```

## References
- [PyTorch, Inference mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disable-grad-doc)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.sampled_line import during, sampled_line
from hotloop.diagnose.price.cost import MATERIAL, between_steps
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

USUAL, LEAST, MOST = 0.12, 0.02, 0.35
"""Of such a forward."""
NAMED = 0.01
"""Of the loop: less is not worth naming."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time of the forwards that kept a graph."""
    spent = observation.run.scored_with_gradients_s
    if spent is None:
        raise Abstain("forwards in evaluation mode (an observation of this version)")
    if not spent:
        return
    scored = between_steps(observation, spent)
    if scored.share < NAMED:
        return
    whole = between_steps(observation, observation.run.parts.get("evaluation_s", 0.0))
    # A program that only evaluates has no evaluation beside its steps.
    beside = f", the whole evaluation takes {whole.share:.0%}" if whole.share > scored.share else ""
    path, line = sampled_line(observation, during("evaluation"))
    yield Symptom(
        evidence=f"forwards in evaluation keep a graph that no backward uses: they take {scored.share:.0%} of the "
        f"loop ({duration(spent)}){beside}",
        metric="run.scored_with_gradients_s",
        path=path,
        line=line,
        gain=scored.gain(expected=USUAL, least=LEAST, most=MOST),
        severity=Severity.WARNING if scored.share >= MATERIAL else Severity.INFO,
    )


rule = Rule(
    code="evaluation-with-gradients",
    title="Evaluation keeps a graph that no backward uses",
    advice="Evaluate under torch.inference_mode() or torch.no_grad().",
    explains=frozenset({"frequent-evaluation"}),
    optimization="no_grad_evaluation",
    page=__doc__ or "",
    check=check,
)
