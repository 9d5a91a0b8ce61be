"""Samples are read in many small pieces.

## What it does
Counts the reads that the loading processes ask the system for, and the bytes they bring, while the parts of samples
are timed. Says so where opening and reading take a quarter of a sample's time and a read brings less than 64 KiB.

## Why it is slow
Each read is a call into the system, and, where the file is not in memory, a trip to the disk or over the network: a
disk that reads gigabytes a second in sequence gives tens of megabytes in random pieces of 4 KiB. `hotloop data bench`
measures both on this disk.

## When it is fine
Where files are in memory already and the step does not wait for data.

## Example
```python
row = h5py.File("data.h5")["x"][index]
```
Use instead:
```python
rows = h5py.File("data.h5")["x"][first : first + 1024]  # a chunk at once; or shards: hotloop data pack
```

## References
- [fio, random and sequential reads](https://fio.readthedocs.io/en/latest/fio_doc.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import MIDWAY
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.making_samples import MIN_SHARE_TO_REPORT, timed_samples, wait_for
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size, duration

SMALL = 64 << 10
"""Linux reads ahead 128 KiB by itself: a read of half of that or more is most of a sequential one."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare bytes and reads, where they cost something."""
    loader, seen = timed_samples(observation)
    if seen.read_bytes_per_sample is None or not seen.reads_per_sample:
        raise Abstain("the reads of the loading processes")
    parts = [part for part in seen.parts if part.kind in {"open", "read"}]
    share = sum(part.share for part in parts)
    each = seen.read_bytes_per_sample / seen.reads_per_sample
    if share < MIN_SHARE_TO_REPORT or each >= SMALL:
        return
    cost = wait_for(observation, loader, parts)
    spent = sum(part.time_per_sample_s for part in parts)
    tensors = (
        "" if seen.used_bytes_per_sample is None else f", {byte_size(seen.used_bytes_per_sample)} of tensors"
    )
    yield Symptom(
        evidence=f"opening and reading take {duration(spent)} of a sample's {duration(seen.sample_s)} ({share:.0%}): "
        f"{seen.reads_per_sample:.0f} reads of {byte_size(each)}{tensors}",
        metric="deep.loading.reads_per_sample",
        path=loader.path,
        line=loader.line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
    )


rule = Rule(
    code="small-reads",
    title="Samples are read in many small pieces",
    advice="Read larger pieces in sequence (`hotloop data pack`), or keep what was read in memory.",
    optimization="dataset_in_memory",
    fixed_by_it=False,
    page=__doc__ or "",
    check=check,
)
