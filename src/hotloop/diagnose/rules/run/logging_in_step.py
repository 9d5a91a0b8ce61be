"""Logging takes much of the loop.

## What it does
Takes the share of the loop that goes to writing: standard output and error, log handlers, progress bars, TensorBoard,
Weights & Biases, the loggers of Lightning and Hugging Face. The time to format a value is not in it, nor the wait for a
value that is on a device.

## Why it is slow
A line is a system call at least, with `flush=True` for each; a terminal, a pipe that nobody reads fast or a file on a
network takes its time while nothing trains.

## When it is fine
Below 5% of the loop it is information.

## Example
```python
for x, y in loader:
    loss = train(x, y)
    print(loss.item(), flush=True)
```
Use instead:
```python
    if step % 100 == 0:
        print(loss.item())
```

## References
- [Python, io: buffering of text streams](https://docs.python.org/3/library/io.html#io.TextIOWrapper)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.sampled_line import sampled_line, under
from hotloop.diagnose.price.cost import between_steps
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the time of writing."""
    num_steps = observation.run.num_steps
    if num_steps is None:
        raise Abstain("an account of the run that names logging")
    spent = observation.run.parts.get("logging_s", 0.0)
    cost = between_steps(observation, spent)
    path, line = sampled_line(observation, under("logging/__init__.py"))
    yield Symptom(
        evidence=f"{cost.share:.0%} of the loop is writing logs: {duration(spent)} in {num_steps} steps",
        metric="run.parts.logging_s",
        path=path,
        line=line,
        cost=cost,
        gain=cost.gain(),
    )


rule = Rule(
    code="logging-in-step",
    title="Logging takes much of the loop",
    advice="Log every N steps, without flushing each line.",
    page=__doc__ or "",
    check=check,
)
