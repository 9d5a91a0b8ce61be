"""The host waits for tensors' values in the step, line by line.

## What it does
Adds up, for each line of the program, the time that a step spends in calls that ask for a tensor's value or for sizes
that depend on values: `.item()`, `.tolist()`, `.cpu()`, `.numpy()`, `float(tensor)`, `if tensor`, `print(tensor)`,
`tensor[mask]`, `.nonzero()`, `torch.cuda.synchronize()`.

## Why it is slow
Work is queued ahead of a device; whoever asks for a value waits until the queue is empty, and the device then idles
until new work comes. On a CPU there is no queue: the price is the call itself, which counts in loops over elements.

## When it is fine
A value that steers the program and cannot be had later. Below 5% of the step it is information. On a device the wait is
in part for work that has to be done anyway, so the gain expected is half of it.

## Example
```python
for value in losses:
    total += value.item()
```
Use instead:
```python
total += losses.detach().sum()  # read once per epoch
```

## References
- [PyTorch, Performance Tuning Guide, Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.call_sites import LineOfCalls, lines_of
from hotloop.diagnose.lines.hot_line import computes, line_cost
from hotloop.diagnose.price.cost import MIDWAY, Cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

MANY = 16
"""Reads a step: a line that reads so many values does nothing else, and picking each out of its tensor costs, too."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take each line that waits."""
    for line in lines_of(observation, "sync"):
        waits = line.device != "cpu"
        cost = _with_picking(observation, line)
        yield Symptom(
            evidence=f"{line.calls} takes {duration(cost.seconds[0])}, {cost.share:.0%} of the step"
            + (f", waiting for the {line.device} device" if waits else ""),
            path=line.path,
            line=line.line,
            cost=cost,
            gain=cost.gain(expected=MIDWAY) if waits else cost.gain(least=MIDWAY),
            by_hand=not waits,
        )


def _with_picking(observation: Observation, line: LineOfCalls) -> Cost:
    """Return the line's cost by the samples under it, where it reads many values and they say more.

    A line that calls the model (`model.generate(...)`, which reads a value for each token), or a framework's loop
    (`trainer.fit()`), does much else.
    """
    if sum(site.count_per_step for site in line.sites) < MANY:
        return line.cost
    try:
        sampled = line_cost(observation, line.path, line.line)
        if sampled.share < line.cost.share or computes(observation, line.path, line.line):
            return line.cost
    except Abstain:
        return line.cost
    return sampled


rule = Rule(
    code="sync-in-step",
    title="The step waits for a tensor's value",
    explains=frozenset({"many-tiny-operators", "batch-too-small"}),
    advice="Keep the value in a tensor and read it every N steps, or read all of them in one call.",
    optimization="deferred_sync",
    fixed_by_it=False,
    page=__doc__ or "",
    check=check,
)
