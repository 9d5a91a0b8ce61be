"""Tensors of no model and no optimizer hold most of the device.

## What it does
Adds up what tensors hold on the accelerator at the highest moment of a few training steps. It is a finding where
tensors that belong to no model and no optimizer, and were there before the steps, hold more than any other class: a
data set, as a rule.

## Why it is slow
It is not: reading from the device's memory is faster than copying. It is what limits the batch.

## When it is fine
Where the whole data set fits beside everything else.

## Example
```python
images = images.to("cuda")
```
Use instead:
```python
loader = DataLoader(TensorDataset(images, labels), batch_size=256, pin_memory=True)
```

## References
- [PyTorch, memory pinning](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.memory import most, peak_account, saves
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the other tensors with the other classes."""
    account = peak_account(observation)
    if account.device == "cpu" or most(account) != "other" or not account.others:
        return
    first = account.others[0]
    shape = "x".join(map(str, first.shape))
    yield Symptom(
        evidence=f"{account.share('other'):.0%} of the peak are tensors of no model and no optimizer, the largest "
        f"{first.dtype} {shape}; on the host that "
        f"{saves(account.held.by_class['other'], account, 'all of them')}",
        metric="memory.account.others",
        severity=Severity.INFO,
    )


rule = Rule(
    code="data-held-on-device",
    title="Tensors of no model and no optimizer hold most of the device",
    advice="Keep the data on the host, in pinned memory, and copy one batch at a time.",
    page=__doc__ or "",
    check=check,
)
