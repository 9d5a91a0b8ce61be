"""More computing threads than cores.

## What it does
Compares the threads of all training processes with the cores that the program may use, where the model computes on the
CPU. The price is not measured by itself; the gain given is what was seen elsewhere.

## Why it is slow
Threads that wait at a barrier spin on the cores that the others need: two processes of two threads on two cores were 4
to 10 times slower than of one thread.

## When it is fine
Never, for threads that compute. Loader workers are counted by `too-many-workers`.

## Example
```python
torch.set_num_threads(16)  # on 4 cores
```
Use instead:
```python
torch.set_num_threads(4)
```

## References
- [PyTorch, CPU threading](https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html)
- [PyTorch, Performance Tuning Guide, Utilize OpenMP](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.cost import Cost, phase_cost
from hotloop.diagnose.facts import num_cores, num_processes, on_cpu
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase

USUAL, LEAST, MOST = 0.5, 0.1, 0.9
"""Of forward, backward and optimizer: four to ten times slower with two processes of two threads on two cores; how much
a single process with too many threads loses depends on how its threads wait, from a tenth to most of the time."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare threads with cores."""
    if not on_cpu(observation):
        return
    threads = observation.program.num_threads
    if threads is None:
        raise Abstain("the number of threads")
    cores, processes = num_cores(observation), num_processes(observation)
    if threads * processes <= cores or threads == 1:
        return
    part = phase_cost(observation, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
    cost = Cost(part.share * USUAL, part.low * LEAST, part.high * MOST, part.step_s)
    yield Symptom(
        evidence=f"{processes} training {'process' if processes == 1 else 'processes'} with {threads} threads "
        f"on {cores} cores",
        metric="program.num_threads",
        cost=cost,
        gain=cost.gain(),
    )


rule = Rule(
    code="oversubscribed-threads",
    title="More computing threads than cores",
    advice="Give each process as many threads as it has cores to itself.",
    optimization="thread_count",
    page=__doc__ or "",
    check=check,
)
