"""A function computes the same for every sample.

## What it does
Watches the functions of the program's own while a few batches are made, and finds lines that call one with the same
arguments for every sample and get the same each time: a filter bank, a window, a table of classes, a file that is
parsed again. Takes their share of the time in which batches are made, where the step waits for data.

## Why it is slow
Work that has one result is done once for each sample, often in Python loops.

## When it is fine
Where the step does not wait for data it costs nothing: below 5% it is information.

## Example
```python
def __getitem__(self, index):
    return mel_filterbank(16000, 1024, 80) @ self.spectra[index]
```
Use instead:
```python
def __init__(self, spectra):
    self.spectra, self.bank = spectra, mel_filterbank(16000, 1024, 80)

def __getitem__(self, index):
    return self.bank @ self.spectra[index]
```

## References
- [Python, functools.cache](https://docs.python.org/3/library/functools.html#functools.cache)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.choosing_samples import making_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.making_samples import said_wait, timed_samples
from hotloop.model.observation import Observation
from hotloop.model.quantities import average


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the calls whose result was the same."""
    loader, seen = timed_samples(observation)
    wait = making_cost(observation, bursts=loader.num_workers > 0)
    for one in seen.constant:
        cost = wait.times(min(1.0, one.share))
        yield Symptom(
            evidence=f"{one.called}() is called here {average(one.num_per_sample, 'time')} a sample with the same "
            f"result, {one.share:.0%} of the time in which batches are made, and {said_wait(observation)}",
            path=one.path,
            line=one.line,
            cost=cost,
            gain=cost.gain(),
        )


rule = Rule(
    code="same-for-every-sample",
    title="A function computes the same for every sample",
    advice="Compute it once, in the data set's __init__ or under functools.cache, and use the result.",
    explains=frozenset({"slow-dataset-line"}),
    precedes=frozenset({"loader-in-training-process", "too-few-workers"}),
    page=__doc__ or "",
    check=check,
)
