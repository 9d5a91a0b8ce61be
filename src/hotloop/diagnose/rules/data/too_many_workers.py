"""The loader has more workers than there are cores.

## What it does
Finds a loader with more workers than each training process has cores.

## Why it is slow
Workers and the training step take the cores from each other, each worker holds memory, and each epoch starts them.

## When it is fine
Workers that mostly wait for a network or a disk. What they cost is not measured, so this is information; `tune` tries
fewer.

## Example
```python
loader = DataLoader(dataset, batch_size=64, num_workers=32)  # on 8 cores
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=64, num_workers=8)
```

## References
- [PyTorch, the loader's own warning](https://github.com/pytorch/pytorch/blob/main/torch/utils/data/dataloader.py)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.facts import cores_per_process, step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare workers with cores."""
    loader = step_loader(observation)
    if loader is None or not loader.num_workers:
        return
    cores = cores_per_process(observation)
    if loader.num_workers > cores:
        yield Symptom(
            evidence=f"num_workers={loader.num_workers}, and each training process has {cores} cores",
            metric="program.loaders.num_workers",
            path=loader.path,
            line=loader.line,
            severity=Severity.INFO,
        )


rule = Rule(
    code="too-many-workers",
    title="More workers than cores",
    advice="Give the loader at most one worker a core.",
    optimization="loader_workers",
    page=__doc__ or "",
    check=check,
)
