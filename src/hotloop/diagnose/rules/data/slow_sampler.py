"""One line of a sampler holds the loader up.

## What it does
Samples the Python stacks of the training thread while the loader asks its sampler for the indices of a batch. Takes the
innermost line of the program under which half of those samples or more are found.

## Why it is slow
Indices are chosen in the training process, with workers too: they begin when they know what to read. A search through
all samples for each index makes the batch wait for the search.

## When it is fine
Where the choice is short beside the step: below 5% it is information.

## Example
```python
def __iter__(self):
    left = list(range(len(self.lengths)))
    while left:
        index = min(left, key=self.lengths.__getitem__)
        left.remove(index)
        yield index
```
Use instead:
```python
def __iter__(self):
    yield from torch.argsort(self.lengths).tolist()  # the order of a whole epoch at once
```

## References
- [PyTorch, torch.utils.data, samplers](https://docs.pytorch.org/docs/stable/data.html#data-loading-order-and-sampler)
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hotloop.diagnose.lines.choosing_samples import chooses, choosing_share
from hotloop.diagnose.lines.hot_line import hot_line, samples_of
from hotloop.diagnose.price.cost import MIDWAY, phase_cost
from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.deep import HostSamples, Sample
from hotloop.model.observation import Observation, Phase


def check(observation: Observation) -> Iterator[Symptom]:
    """Name the line."""
    if step_loader(observation) is None:
        return
    host, own = samples_of(observation, "train")
    found = hot_line(host, _choosing(host, own), own)
    if found is None:
        return
    cost = found.part_of(phase_cost(observation, Phase.DATA).times(choosing_share(observation)))
    yield Symptom(
        evidence=f"{cost.share:.0%} of the step is spent under this line, choosing the samples of a batch in the "
        "training process",
        path=found.path,
        line=found.line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
    )


def _choosing(host: HostSamples, own: list[Sample]) -> Iterator[Sample]:
    """Yield what the training thread did while samples were chosen, without the loop that asked for them."""
    for sample in own:
        if sample.phase == Phase.DATA.value:
            frames = [host.frames[number] for number in sample.stack]
            below = next((at for at, frame in enumerate(frames) if chooses(frame)), None)
            if below is not None:
                yield msgspec.structs.replace(sample, stack=sample.stack[below:])


rule = Rule(
    code="slow-sampler",
    title="One line of the sampler holds the loader up",
    advice="Choose the order of a whole epoch at once, with tensors; keep what does not change between epochs.",
    precedes=frozenset({"loader-in-training-process", "sample-by-sample-batches", "too-few-workers"}),
    explains=frozenset({"input-bound"}),
    page=__doc__ or "",
    check=check,
)
