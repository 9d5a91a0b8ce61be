"""Tensors on the host are copied or converted in every step, line by line.

## What it does
Adds up, for each line of the program, the time that a step spends in `.to()` and `.copy_()` that really copy, from
host to host: another type, another layout. Copies to a device are the transfer phase, which has a rule of its own.

## Why it is slow
Every byte is read and written once more, and the copy needs memory of its own.

## When it is fine
Small batches that are stored in a smaller type. Below 5% of the step it is information.

## Example
```python
for images, labels in loader:
    images = images.to(torch.float64).to(torch.float32)
```
Use instead:
```python
images = images.float()  # once, in the data set
```

## References
- [PyTorch, Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.call_costs import lines_of
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size, duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Take each line that copies on the host."""
    for line in lines_of(observation, "copy"):
        copied = sum(site.bytes_per_step or 0.0 for site in line.sites)
        if line.device == "cpu" and copied:
            yield Symptom(
                evidence=f"{line.calls} copies {byte_size(copied)} in {duration(line.cost.seconds[0])}, "
                f"{line.cost.share:.0%} of the step",
                path=line.path,
                line=line.line,
                cost=line.cost,
                gain=line.cost.gain(),
            )


rule = Rule(
    code="copy-in-step",
    title="The step copies tensors on the host",
    advice="Store the data in the type and layout that the model wants, and convert it once.",
    page=__doc__ or "",
    check=check,
)
