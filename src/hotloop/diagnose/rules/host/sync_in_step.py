"""The host waits for tensors' values in the step, line by line.

## What it does
Adds up, for each line of the program, the time that a step spends in calls that ask for a tensor's value or for sizes
that depend on values: `.item()`, `.tolist()`, `.cpu()`, `.numpy()`, `float(tensor)`, `if tensor`, `print(tensor)`,
`tensor[mask]`, `.nonzero()`, `torch.cuda.synchronize()`.

## Why it is slow
Work is queued ahead of a device; whoever asks for a value waits until the queue is empty, and the device then idles
until new work comes. On a CPU there is no queue: the price is that of the calls themselves, which counts in loops over
elements. What else stands on the line (a simulator's step, the model) is no part of it.

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

from hotloop.diagnose.lines.call_costs import lines_of
from hotloop.diagnose.price.cost import MIDWAY
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take each line that waits."""
    for line in lines_of(observation, "sync"):
        waits = line.device != "cpu"
        yield Symptom(
            evidence=f"{line.calls} takes {duration(line.cost.seconds[0])}, {line.cost.share:.0%} of the step"
            + (f", waiting for the {line.device} device" if waits else ""),
            path=line.path,
            line=line.line,
            cost=line.cost,
            gain=line.cost.gain(expected=MIDWAY) if waits else line.cost.gain(least=MIDWAY),
            by_hand=not waits,
        )


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
