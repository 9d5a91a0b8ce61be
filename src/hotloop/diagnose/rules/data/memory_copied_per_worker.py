"""Each loader worker has a copy of much memory to itself.

## What it does
Asks the system how much memory each worker shares with no other process, while it makes batches, and looks for the
largest list, dictionary or array of Python objects that the data set or a global names. It is a finding where a worker
has 512 MiB to itself, or where the workers together copy as much of one container; a warning where those copies are
more than what the machine had left.

## Why it is slow
Workers share the training process's memory until one of them writes to it, and Python writes to an object whenever it
looks at it: its reference count changes. A list of a million file names or of small arrays is then copied to every
worker, page by page; the machine may run out of memory, or drop the files that it keeps in it.

## When it is fine
Where there is memory for as many copies as there are workers.

## Example
```python
self.names = [str(path) for path in folder.rglob("*.jpg")]  # a Python object each
```
Use instead:
```python
self.names = numpy.array([str(path) for path in folder.rglob("*.jpg")], dtype=numpy.bytes_)  # one object
```

## References
- [PyTorch issue 13246, DataLoader memory with forked workers](https://github.com/pytorch/pytorch/issues/13246)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.making_samples import timed_samples
from hotloop.model.deep import CopiedContainer, Loading
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size
from hotloop.observe.profile.container_line import making_line

MUCH_BYTES = 512 << 20
"""A worker that had imported torch and decoded images had 40 to 90 MB to itself (torch 2.13)."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take what a worker has to itself, and what it copies of the data set."""
    loader, seen = timed_samples(observation)
    private, copied = seen.private_bytes_per_worker or 0.0, _copied_bytes(seen)
    if seen.process != "worker" or max(private, copied) < MUCH_BYTES:
        return
    said = [
        f"each of {seen.num_processes} workers has {byte_size(private)} that it shares with no other process"
    ]
    holder = seen.copied if copied >= MUCH_BYTES else None
    if holder is not None:
        said.append(
            f"{holder.name} of {holder.function} has {holder.num:,} entries, {byte_size(holder.copied_bytes)} of "
            f"Python objects that each worker copies as it reads them, {byte_size(copied)} in all"
        )
    yield Symptom(
        evidence="; ".join(said),
        metric="deep.loading.copied" if holder else "deep.loading.private_bytes_per_worker",
        severity=Severity.WARNING if _is_too_much(observation, copied) else Severity.INFO,
        **_place(holder, loader.path, loader.line),
    )


def _copied_bytes(seen: Loading) -> float:
    return 0.0 if seen.copied is None else seen.num_processes * seen.copied.copied_bytes


def _is_too_much(observation: Observation, copied: float) -> bool:
    left = observation.monitors.mean("memory_available_bytes") if observation.monitors is not None else None
    return left is not None and copied >= left


def _place(holder: CopiedContainer | None, path: str | None, line: int | None) -> dict[str, Any]:
    made = making_line(holder) if holder is not None else None
    return (
        {"path": path, "line": line}
        if holder is None or made is None
        else {"path": holder.path, "line": made}
    )


rule = Rule(
    code="memory-copied-per-worker",
    title="Loader workers copy the data set's memory",
    advice="Hold file names and samples in arrays or tensors, not in lists of Python objects.",
    page=__doc__ or "",
    check=check,
)
