"""Each loader worker has a copy of much memory to itself.

## What it does
Asks the system how much memory each worker shares with no other process, while it makes batches.

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

from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.making_samples import timed_samples
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size

MUCH_BYTES = 512 << 20
"""A worker that had imported torch and decoded images had 40 to 90 MB to itself (torch 2.13)."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take what a worker has to itself."""
    loader, seen = timed_samples(observation)
    private = seen.private_bytes_per_worker
    if private is None or private < MUCH_BYTES:
        return
    yield Symptom(
        evidence=f"each of {seen.num_processes} workers has {byte_size(private)} that it shares with no other process",
        metric="deep.loading.private_bytes_per_worker",
        path=loader.path,
        line=loader.line,
        severity=Severity.INFO,
    )


rule = Rule(
    code="memory-copied-per-worker",
    title="Loader workers copy the data set's memory",
    advice="Hold file names and samples in arrays or tensors, not in lists of Python objects.",
    page=__doc__ or "",
    check=check,
)
