"""The allocator's unused memory fills the device.

## What it does
Takes what torch's caching allocator reserved beyond the most that tensors took. It is a finding where the device is
full (a tenth left, or an allocator that had to give back and ask again) and would not be so without it.

## Why it is slow
Blocks of one size are cut out of larger ones and leave rests that serve no other request. Where sizes change from step
to step, reserved memory runs ahead of what is in use, until the allocator has to give its cache back to the driver,
with a synchronization, or the program runs out of memory although enough is unused.

## When it is fine
Slack on a device that has room costs nothing.

## Example
```python
subprocess.run(["python", "train.py"])
```
Use instead:
```python
settings = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
subprocess.run(["python", "train.py"], env={**os.environ, **settings})
```

## References
- [PyTorch, CUDA memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.memory.near_memory_limit import is_full
from hotloop.model.finding import Severity
from hotloop.model.observation import DeviceMemory, Observation
from hotloop.model.quantities import byte_size

_ON_ROCM = "Give batches few different sizes: segments that grow are CUDA's."


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare what the device would hold without the slack."""
    devices = [device for device in observation.memory.devices if device.slack_bytes is not None]
    if not devices:
        raise Abstain("the allocator of an accelerator")
    on_rocm = observation.program.hip_version is not None
    for device in devices:
        slack = device.slack_bytes or 0
        full = device.num_retries > 0 or is_full(device.used_bytes, device)
        if full and not is_full(device.used_bytes - slack, device):
            yield Symptom(
                evidence=_told(device, slack),
                metric="memory.devices.allocated_bytes",
                severity=Severity.WARNING,
                advice=_ON_ROCM if on_rocm else None,
                by_hand=on_rocm,
            )


def _told(device: DeviceMemory, slack: int) -> str:
    split = device.inactive_split_bytes
    rests = f", at most {byte_size(split)} in rests of split blocks" if split is not None else ""
    return (
        f"the allocator reserved {byte_size(device.reserved_bytes)} of device {device.index} for tensors that took "
        f"{byte_size(device.allocated_bytes or 0)} at most: {byte_size(slack)} of slack{rests}, and the device is full"
    )


rule = Rule(
    code="fragmented-memory",
    title="The allocator's unused memory fills the device",
    advice="Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and give batches few different sizes.",
    optimization="allocator_settings",
    page=__doc__ or "",
    check=check,
)
