"""The loader makes batches in the training process, and the step waits for it.

## What it does
Finds a loader with `num_workers=0` whose batches the step waits for. The gain is that of a pipeline: with a worker
the slower of loading and computing sets the pace, and on a CPU both share the cores: a worker takes one from what
computes on several threads.

## Why it is slow
Reading, decoding, augmenting and collating run between two steps, while the device waits.

## When it is fine
Samples that are quicker to make than to hand over (`sample-by-sample-batches` then); an `IterableDataset` that does
not divide itself among workers; a machine without a free core.

## Example
```python
loader = DataLoader(dataset, batch_size=64, shuffle=True)
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4, persistent_workers=True)
```

## References
- [PyTorch, Single- and Multi-process Data Loading](https://docs.pytorch.org/docs/stable/data.html)
- [PyTorch issue 23048, choosing the number of workers](https://github.com/pytorch/pytorch/issues/23048)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.choosing_samples import making_cost
from hotloop.diagnose.price.cost import LEAST
from hotloop.diagnose.price.facts import cores_per_process, step_loader
from hotloop.diagnose.price.threads import pipelined
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.handing_over import BATCH_S
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration
from hotloop.model.ratio import Ratio


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the wait for a loader without workers."""
    cost = making_cost(observation)
    loader = step_loader(observation)
    if loader is None or loader.num_workers or loader.iterable or cost.seconds[0] < BATCH_S:
        return
    gain = _best(observation, cost.share, cost.gain().high)
    evidence = (
        f"num_workers=0, and {cost.share:.0%} of the step ({duration(cost.seconds[0])}) "
        f"is making the batch from {loader.dataset}"
    )
    yield Symptom(
        evidence=evidence
        if gain.ratio > 1.0 + LEAST
        else f"{evidence}; workers would take the cores that compute",
        metric="phases.data.share",
        path=loader.path,
        line=loader.line,
        cost=cost,
        gain=gain,
    )


def _best(observation: Observation, wait: float, most: float) -> Ratio:
    """Return the gain of the best numbers of workers and threads; the lower end is none, the upper Amdahl's bound."""
    cores = cores_per_process(observation)
    forms = [(n, threads) for n in range(1, cores + 1) for threads in (None, max(1, cores - n))]
    best = max(pipelined(observation, wait, cores, n, threads) for n, threads in forms)
    return Ratio(max(1.0, min(best, most)), 1.0, most)


rule = Rule(
    code="loader-in-training-process",
    title="Batches are made in the training process",
    advice="Give the loader workers, where cores are free; make samples cheaper, where all compute.",
    optimization="loader_workers",
    explains=frozenset({"input-bound"}),
    page=__doc__ or "",
    check=check,
)
