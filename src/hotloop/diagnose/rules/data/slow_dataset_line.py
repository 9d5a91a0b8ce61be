"""One line of the data set holds most of the loader's time.

## What it does
Samples the Python stacks of loader workers while they make batches, or, without workers, those of the training thread
while it waits for a batch. Takes the innermost line of the program under which half of the samples or more are found,
where the step waits for data at all.

## Why it is slow
The loader makes each sample by running this line: decoding, reading, augmenting.

## When it is fine
Where the step does not wait for data the line costs nothing: below 5% it is information.

## Example
```python
def __getitem__(self, index):
    return [math.log1p(value) for value in self.rows[index]]
```
Use instead:
```python
def __getitem__(self, index):
    return torch.log1p(self.rows[index])  # or once, for all rows, before training
```

## References
- [PyTorch, torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hotloop.diagnose.lines.choosing_samples import chooses, makes, making_cost
from hotloop.diagnose.lines.hot_line import hot_line, samples_of
from hotloop.diagnose.lines.line_price import repeats
from hotloop.diagnose.price.cost import MIDWAY
from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.deep import HostSamples, Sample
from hotloop.model.observation import Observation, Phase


def check(observation: Observation) -> Iterator[Symptom]:
    """Name the line."""
    loader = step_loader(observation)
    if loader is None:
        return
    process = "worker" if loader.num_workers else "train"
    host, own = samples_of(observation, process)
    part = own if loader.num_workers else list(_fetching(host, own))
    found = hot_line(host, part, own)
    if found is None:
        return
    wait = making_cost(observation, bursts=loader.num_workers > 0)
    saved = repeats(observation, found.path, found.line)
    cost = found.part_of(wait)
    yield Symptom(
        evidence=f"{found.share:.0%} of the time in which batches are made is spent under this line, and the step "
        f"waits for data {wait.share:.0%} of its time",
        path=found.path,
        line=found.line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY if saved is None else saved),
    )


def _fetching(host: HostSamples, own: list[Sample]) -> Iterator[Sample]:
    """Yield what the training thread did while it made batches, without the loop that asked for them."""
    for sample in own:
        frames = [host.frames[number] for number in sample.stack]
        if sample.phase == Phase.DATA.value and not any(chooses(frame) for frame in frames):
            below = next((at for at, frame in enumerate(frames) if makes(frame)), len(frames))
            yield msgspec.structs.replace(sample, stack=sample.stack[below:])


rule = Rule(
    code="slow-dataset-line",
    title="One line of the data set holds the loader up",
    advice="Do this once before training and keep the result, or do it for a whole batch with tensors.",
    precedes=frozenset({"loader-in-training-process", "too-few-workers"}),
    page=__doc__ or "",
    check=check,
)
