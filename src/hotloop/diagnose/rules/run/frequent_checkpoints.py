"""Saving checkpoints takes much of the run.

## What it does
Takes the share of the loop in `torch.save` and its like. It is a warning from 5% of the loop, where a whole epoch and
more than one checkpoint were seen; otherwise it is information.

## Why it is slow
Parameters and optimizer state are copied to the host, pickled and written, while the device waits.

## When it is fine
Where a lost hour costs more than the saving.

## Example
```python
for x, y in loader:
    train(x, y)
    torch.save(model.state_dict(), "last.pt")
```
Use instead:
```python
    if step % 1000 == 0:
        torch.save(model.state_dict(), "last.pt")
```

## References
- [PyTorch, Saving and loading models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)
- [PyTorch, asynchronous checkpoints](https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.sampled_line import sampled_line, under
from hotloop.diagnose.price.cost import between_steps, recurs
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time of saving."""
    spent = observation.run.parts.get("checkpoint_s", 0.0)
    cost = between_steps(observation, spent)
    sure = recurs(observation, observation.run.num_checkpoints)
    where = "of the loop" if sure else "of what was seen of the loop, less than an epoch,"
    path, line = sampled_line(observation, under("torch/serialization.py"))
    yield Symptom(
        evidence=f"{cost.share:.0%} {where} is saving checkpoints ({duration(spent)}{_times(observation)})",
        metric="run.parts.checkpoint_s",
        path=path,
        line=line,
        cost=cost,
        gain=cost.gain(),
        severity=None if sure and observation.run.num_checkpoints != 1 else Severity.INFO,
    )


def _times(observation: Observation) -> str:
    num = observation.run.num_checkpoints
    return f", {num} times" if num else ""


rule = Rule(
    code="frequent-checkpoints",
    title="Saving checkpoints takes much of the run",
    advice="Save less often, only what is needed, or in another thread.",
    page=__doc__ or "",
    check=check,
)
