"""More computing threads than cores.

## What it does
Compares the threads of all training processes with the cores that the program may use, where the model computes on the
CPU. The price is not measured by itself; the gain given is what was seen elsewhere.

## Why it is slow
Threads that wait at a barrier spin on the cores that the others need: two processes of two threads on two cores were 4
to 10 times slower than of one thread.

## When it is fine
Never for several processes. One process with too many threads lost nothing to half of its time, so that it is
information. Loader workers are counted by `too-many-workers`.

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
from hotloop.diagnose.price.cost import Cost, phase_cost
from hotloop.diagnose.price.facts import num_cores, num_processes, on_cpu
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation, Phase

SEVERAL = (0.75, 0.5, 0.9)
"""Usual, least and most of forward, backward and optimizer: two processes of two threads on two cores were 4 to 10
times slower than of one."""
ONE = (0.3, 0.0, 0.5)
"""The same for one process: with 8 threads on two cores a convolutional step took 1.3 and 1.6 times as long as with
one, a perceptron's 2.1 and 1.7 times (waiting actively, and passively); with 4 threads 0.8 to 1.4 times (torch 2.13, a
machine that was not quiet). The least is nothing, so that this is information."""


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
    usual, least, most = SEVERAL if processes > 1 else ONE
    cost = Cost(part.share * usual, part.low * least, part.high * most, part.step_s)
    yield Symptom(
        evidence=f"{processes} training {'process' if processes == 1 else 'processes'} with {threads} threads "
        f"on {cores} cores",
        metric="program.num_threads",
        cost=cost,
        gain=cost.gain(least=1.0),  # the least is in the cost
    )


rule = Rule(
    code="oversubscribed-threads",
    title="More computing threads than cores",
    advice="Give each process as many threads as it has cores to itself.",
    optimization="thread_count",
    made_by_neighbours=True,
    page=__doc__ or "",
    check=check,
)
