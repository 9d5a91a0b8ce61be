"""Samples are opened, read, decoded and transformed anew in every epoch, with the same result.

## What it does
Adds up what is done for a sample before chance comes in: opening, reading, decoding, and the transforms before the
first that was seen to draw random numbers. Only where a second epoch was seen, or the program is known to have one.

## Why it is slow
The second epoch computes what the first one has computed.

## When it is fine
A single epoch; samples that take more memory or disk than there is; a step that does not wait for data.

## Example
```python
def __getitem__(self, index):
    return self.augment(resize(decode(self.paths[index])))
```
Use instead:
```python
def __getitem__(self, index):
    return self.augment(self.resized[index])  # read, decoded and resized once, before training
```

## References
- [PyTorch, torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.cost import MIDWAY
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.making_samples import MIN_SHARE_TO_REPORT, said_wait, timed_samples, wait_for
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration


def check(observation: Observation) -> Iterator[Symptom]:
    """Add up what is the same each time."""
    loader, seen = timed_samples(observation)
    if loader.iterable or loader.num_iterators < 2:
        return
    parts = [part for part in seen.parts if part.repeats]
    share = sum(part.share for part in parts)
    if share < MIN_SHARE_TO_REPORT:
        return
    largest = ", ".join(f"{part.name} {duration(part.time_per_sample_s)}" for part in parts[:3])
    cost = wait_for(observation, loader, parts)
    yield Symptom(
        evidence=f"{share:.0%} of a sample's {duration(seen.sample_s)} gives the same in every epoch ({largest}), and "
        f"{said_wait(observation)}",
        metric="deep.loading.parts",
        path=loader.path,
        line=loader.line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
    )


rule = Rule(
    code="same-work-each-epoch",
    title="Every epoch decodes and transforms the same samples again",
    advice="Keep what comes out before the first random transform, in memory or in a file that is mapped.",
    optimization="cached_preprocessing",
    fixed_by_it=False,
    page=__doc__ or "",
    check=check,
)
