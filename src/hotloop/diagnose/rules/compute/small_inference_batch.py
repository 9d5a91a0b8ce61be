"""The model is asked for fewer samples at a time than it could answer at the same price.

## What it does
Calls the model of a program that only evaluates with batches of other sizes (its last one, repeated), without
gradients, and takes the smallest one that answers nearly as many samples a second as any. `--latency-limit 50ms` keeps
to those of which 95 in a hundred take no longer.

## Why it is slow
Dispatch, kernel launches and reading the weights take the same time for one sample as for sixteen.

## When it is fine
Where samples come one by one and each is waited for: a larger batch answers more of them, and each of them later. The
gain is that of the model alone; samples have to be there.

## Example
```python
for image in images:
    model(image[None])
```
Use instead:
```python
for batch in DataLoader(images, batch_size=16):
    model(batch)
```

## References
- [PyTorch, Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
- [Crankshaw et al. 2017, Clipper: adaptive batching under a latency limit](https://arxiv.org/abs/1612.03079)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.cost import Cost, phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.inference import Latency
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import counted, duration, significant

MIN_GAIN_TO_REPORT = 1.2
"""Ratio of samples per second, at the worst ends of both intervals."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Set the program's batch against the best one that was tried."""
    found = observation.inference
    if found is None or found.batch not in found.by_batch or found.best_batch is None:
        return
    here, best = found.by_batch[found.batch], found.by_batch[found.best_batch]
    times = found.best_batch / found.batch
    gain, low, high = (
        times * one / other
        for one, other in (
            (here.p50_s, best.p50_s),
            (here.low_s, best.high_s),
            (here.high_s, best.low_s),
        )
    )
    if times <= 1 or low < MIN_GAIN_TO_REPORT:
        return
    model = phase_cost(observation, Phase.FORWARD)
    cost = Cost(
        model.share * (1 - 1 / gain), model.low * (1 - 1 / low), model.high * (1 - 1 / high), model.step_s
    )
    yield Symptom(
        evidence=f"{counted(found.best_batch, 'sample')} at a time are answered {significant(gain)} times as fast as "
        f"{found.batch} (a batch takes {_p95(best)} instead of {_p95(here)})",
        metric="inference.by_batch",
        cost=cost,
        gain=cost.gain(least=1.0),
    )


def _p95(latency: Latency) -> str:
    return f"{duration(latency.p95_s)} at p95"


rule = Rule(
    code="small-inference-batch",
    title="The model could answer more samples at a time",
    advice="Collect requests, and give the model a larger batch; --latency-limit says what may be waited for.",
    page=__doc__ or "",
    check=check,
)
