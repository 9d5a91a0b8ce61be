"""Memory is nearly full.

## What it does
Compares the peak with the limit: on the host that of all processes together with the machine's memory; on each
accelerator what the allocator reserved, and what was taken beside it, with the device's. Where the allocator had to
give its cached blocks back to the driver and ask again, the device is full, whatever the figures say.

## Why it is slow
A full host swaps or kills; a full device makes the allocator give back and ask again, which waits for the device.

## When it is fine
A peak that is known and does not move. What it costs is not measured.

## Example
```python
loader = DataLoader(dataset, batch_size=512)
```
Use instead:
```python
loader = DataLoader(dataset, batch_size=256)
```

## References
- [PyTorch, CUDA memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
- [earlyoom, which acts when 10% are left](https://github.com/rfjakob/earlyoom)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.memory_limit import FULL
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import DeviceMemory, Observation
from hotloop.model.quantities import byte_size, counted


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the peaks with the limits."""
    host, whole = _on_host(observation), observation.machine.get("memory_bytes")
    if observation.memory.peak_bytes is None:
        raise Abstain("the peak of memory")
    if not isinstance(whole, int):
        raise Abstain("the size of memory")
    if host is not None and host >= FULL * whole:
        yield Symptom(
            evidence=f"the peak of {byte_size(host)} is {host / whole:.0%} of {byte_size(whole)}",
            metric="memory.peak_bytes",
            severity=Severity.WARNING,
        )
    for device in observation.memory.devices:
        if device.num_retries or is_full(device.used_bytes, device):
            yield Symptom(
                evidence=_told(device), metric="memory.devices.reserved_bytes", severity=Severity.WARNING
            )


def is_full(num_bytes: int, device: DeviceMemory) -> bool:
    """Whether so much leaves too little of a device."""
    return num_bytes >= FULL * device.total_bytes


def _on_host(observation: Observation) -> int | None:
    """Return the most that all processes of the program held on the host; None: not known."""
    memory = observation.memory
    known = [memory.host_peak_bytes, memory.tree.peak_bytes if memory.tree else None]
    known += [memory.peak_bytes] if memory.device == "cpu" else []
    return max((size for size in known if size is not None), default=None)


def _told(device: DeviceMemory) -> str:
    said = (
        f"{byte_size(device.used_bytes)} of the {byte_size(device.total_bytes)} of device {device.index} were taken: "
        f"{byte_size(device.reserved_bytes)} by torch's allocator, {byte_size(device.beside_bytes)} outside it"
    )
    if not device.num_retries:
        return said
    gave_back = f"gave its cached blocks back and asked again {counted(device.num_retries, 'time')}"
    return f"{said}; the allocator {gave_back}, each time waiting for the device"


rule = Rule(
    code="near-memory-limit",
    title="Memory is nearly full",
    advice="Use a smaller micro-batch with accumulation, or recompute activations.",
    page=__doc__ or "",
    check=check,
)
