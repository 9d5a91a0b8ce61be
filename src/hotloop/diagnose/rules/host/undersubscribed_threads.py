"""Cores stand idle while the model computes.

## What it does
Finds a program that computes on the CPU with fewer threads than its processes have cores, loader workers taken off.
What operators that are long enough to be divided take of the step is what more threads can gain; without a profile of
operators no gain is told. It is a warning where a line of the program sets the number, else information: `tune` tries
other counts.

## Why it is slow
`torchrun` exports `OMP_NUM_THREADS=1` to its children; a cluster's default, or a line copied from elsewhere, may do so
as well.

## When it is fine
Small models, whose operations are too short to be divided; cores that other programs need.

## Example
```python
torch.set_num_threads(1)  # on 8 cores
```
Use instead:
```python
torch.set_num_threads(8)
```

## References
- [PyTorch, torchrun and OMP_NUM_THREADS](https://docs.pytorch.org/docs/stable/elastic/run.html)
- [PyTorch, Performance Tuning Guide, Utilize OpenMP](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import phase_share
from hotloop.diagnose.price.facts import contended, cores_per_process, on_cpu, step_loader
from hotloop.diagnose.price.threads import with_threads
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase
from hotloop.model.ratio import Ratio


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare threads with cores."""
    if not on_cpu(observation):
        return
    threads = observation.program.num_threads
    if threads is None:
        raise Abstain("the number of threads")
    loader = step_loader(observation)
    workers = loader.num_workers if loader else 0
    free = cores_per_process(observation) - workers
    if threads >= free:
        return
    computing = phase_share(observation, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
    less = computing * (1.0 - with_threads(observation, threads, free))
    yield Symptom(
        evidence=f"{threads} computing threads {_of(observation, free)}, and {computing:.0%} of the step computes",
        metric="program.num_threads",
        severity=Severity.INFO,
        gain=Ratio(1.0 / (1.0 - less), 1.0, 1.0 / (1.0 - computing * (1.0 - threads / free))),
    )


def _of(observation: Observation, free: int) -> str:
    if contended(observation):
        return f"of {free} cores, which others used {observation.foreign_share:.0%} of meanwhile"
    return f"where {free} cores are free"


rule = Rule(
    code="undersubscribed-threads",
    title="Fewer computing threads than free cores",
    advice="Try as many threads as each process has cores.",
    optimization="thread_count",
    page=__doc__ or "",
    check=check,
)
