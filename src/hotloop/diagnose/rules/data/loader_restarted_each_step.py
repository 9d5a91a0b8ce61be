"""The data loader is started again for every step, seen as it runs: the lint rule of this name finds it in the source.

## What it does
Finds a loader that gives one step's batches each time it is started, though its data set has more. Takes the samples of
the training thread's stacks under the line that asks for the batch, without those in which the batch is made.

## Why it is slow
A new iterator chooses the order of all samples again (or starts the workers again), and all but the first batches of it
are thrown away.

## When it is fine
A data set that one step uses up.

## Example
```python
for step in range(steps):
    images, labels = next(iter(loader))
    loss_fn(model(images), labels).backward()
    optimizer.step()
```
Use instead:
```python
for images, labels in loader:
    loss_fn(model(images), labels).backward()
    optimizer.step()
```

## References
- [PyTorch, torch.utils.data](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.choosing_samples import chooses, is_making
from hotloop.diagnose.lines.hot_line import is_under, sampled_part, sampled_share, samples_of
from hotloop.diagnose.lines.sampled_line import sampled_line
from hotloop.diagnose.price.cost import measured_step
from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.program import LoaderFacts


def check(observation: Observation) -> Iterator[Symptom]:
    """Take what starting costs."""
    loader = step_loader(observation)
    if loader is None:
        return
    _, own = samples_of(observation, "train")
    if observation.epoch_steps != 1 or not _has_more(loader):
        return
    path, line = sampled_line(observation, lambda _, frames: any(chooses(frame) for frame in frames))
    if path is None or line is None:
        return
    share = sampled_part(
        observation,
        lambda host, sample: (
            is_under(host, sample, path, range(line, line + 1)) and not is_making(host, sample)
        ),
    )
    cost = sampled_share(share, sum(sample.num for sample in own), measured_step(observation).whole_s)
    yield Symptom(
        evidence=f"the loader of {loader.dataset_len:,} samples was started {loader.num_iterators} times, once a step, "
        f"and starting it takes {cost.share:.0%} of the step",
        path=path,
        line=line,
        cost=cost,
        gain=cost.gain(),
    )


def _has_more(loader: LoaderFacts) -> bool:
    """Whether the data set has batches for another step.

    Raises:
        Abstain: it does not tell.
    """
    if loader.dataset_len is None or not loader.batch_size:
        raise Abstain("the length of the data set, and of a batch")
    return loader.dataset_len >= 2 * loader.batch_size * max(1.0, loader.batches_per_step or 1.0)


rule = Rule(
    code="loader-restarted-each-step",
    title="The data loader is started again for every step",
    advice="Iterate the loader itself, or keep one iterator and renew it only when it ends.",
    explains=frozenset({"input-bound", "short-epochs", "slow-sampler", "workers-not-persistent"}),
    page=__doc__ or "",
    check=check,
)
