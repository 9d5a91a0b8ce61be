"""Buffers are given back to the system and faulted in again in every step.

## What it does
Counts the minor page faults of a step (`ranks[].page_faults`), where the model computes on the CPU. A fault is priced
at 2 microseconds, 0.5 at least (on metal) and 5 at most (in a virtual machine).

## Why it is slow
malloc maps each large buffer (an activation, a batch) from the system and gives it back when it is freed. The next step
maps it anew: the kernel takes a fault for each page of 4 KiB, and clears it.

## When it is fine
In the first steps, and where memory grows because more is kept.

## Example
```python
subprocess.run(["python", "train.py"])
```
Use instead:
```python
kept = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_TOP_PAD_": "67108864"}
subprocess.run(["python", "train.py"], env={**os.environ, **kept})
```

## References
- [mallopt(3)](https://man7.org/linux/man-pages/man3/mallopt.3.html)
- [PyTorch, Performance Tuning Guide, Switch memory allocator](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import LEAST, Cost
from hotloop.diagnose.price.facts import on_cpu
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.page_faults import FAULT_S, LONGEST_FAULT_S, SHORTEST_FAULT_S, faulting
from hotloop.model.quantities import byte_size


def check(observation: Observation) -> Iterator[Symptom]:
    """Price the page faults of a step."""
    if not on_cpu(observation):
        return
    usual, least, most = (
        faulting(observation, fault_s) for fault_s in (FAULT_S, SHORTEST_FAULT_S, LONGEST_FAULT_S)
    )
    if observation.step is None or usual is None or least is None or most is None:
        raise Abstain("the page faults of a step")
    if usual < LEAST:
        return
    num = max(rank.page_faults or 0.0 for rank in observation.ranks)
    cost = Cost(usual, least, most, observation.step.median_s)
    yield Symptom(
        evidence=f"each step faults {num:.0f} pages ({byte_size(num * 4096)}) in",
        metric="ranks.page_faults",
        cost=cost,
        gain=cost.gain(),
    )


rule = Rule(
    code="page-faults-in-step",
    title="Buffers are given back and faulted in again in every step",
    advice="Let malloc keep large buffers.",
    optimization="cpu_allocator",
    page=__doc__ or "",
    check=check,
)
