"""One process drives several devices with DataParallel.

## What it does
Finds a root module that is a `DataParallel`. What it costs is not measured.

## Why it is slow
Each step copies the model to all devices, splits the batch and gathers outputs on one, driven by threads that share one
interpreter lock.

## When it is fine
Never for training, by PyTorch's own documentation.

## Example
```python
model = torch.nn.DataParallel(model)
```
Use instead:
```python
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
```

## References
- [PyTorch, Use DistributedDataParallel instead of DataParallel](https://docs.pytorch.org/docs/stable/notes/cuda.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.facts import on_cpu
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation


def check(observation: Observation) -> Iterator[Symptom]:
    """Read how the root module is distributed."""
    if observation.program.distributed == "dp":
        severity = Severity.INFO if on_cpu(observation) else Severity.WARNING
        yield Symptom(
            evidence="the root module is a DataParallel",
            metric="program.distributed",
            severity=severity,  # on a CPU it only passes the call on
        )


rule = Rule(
    code="data-parallel",
    title="DataParallel drives the devices",
    advice="Use DistributedDataParallel, one process a device.",
    page=__doc__ or "",
    check=check,
)
