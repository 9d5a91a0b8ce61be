"""A batch is put together from samples that are there already, one by one.

## What it does
Finds a loader without workers that the step waits for, whose samples are rows of tables that lie in memory, or whose
batch is made in less time than a worker would need to hand it over.

## Why it is slow
`__getitem__` is called for each sample, then all are stacked: Python and small copies for what is one indexing
operation on the whole batch. Workers would not help: sending a batch costs more.

## When it is fine
Steps that are long against it: below 5% it is information.

## Example
```python
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
```
Use instead:
```python
class Batches(TensorDataset):
    def __getitems__(self, indices):
        return [tensor[indices] for tensor in self.tensors]

loader = DataLoader(Batches(x, y), batch_size=64, shuffle=True, collate_fn=lambda batch: batch)
```

## References
- [PyTorch, torch.utils.data.Dataset, `__getitems__`](https://docs.pytorch.org/docs/stable/data.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.choosing_samples import making_cost
from hotloop.diagnose.price.cost import MIDWAY
from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.handing_over import BATCH_S
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

ONE_INDEX = 0.84
"""Of the making of a batch of rows: indexing 1024 rows of 24 numbers at once took 0.39 ms, one by one 2.39 ms."""


ROW_S = 5e-5
"""Of one sample: indexing two tables and stacking took 2.3 us; what takes twenty times as long does something else."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the wait for a loader whose batches are quick to make."""
    cost = making_cost(observation)
    loader = step_loader(observation)
    seen = observation.deep.loading if observation.deep else None
    rows = seen is not None and seen.rows_in_memory and seen.sample_s < ROW_S
    if loader is None or loader.num_workers or (cost.seconds[0] >= BATCH_S and not rows):
        return
    if loader.batch_size is None or _at_once(
        observation
    ):  # a sampler of batches, or a data set that gives them
        return
    yield Symptom(
        evidence=(
            f"{cost.share:.0%} of the step is making a batch of {loader.batch_size} samples in "
            f"{duration(cost.seconds[0])}, "
            + ("each a row of tables in memory" if rows else "less than a worker takes to hand one over")
        ),
        metric="phases.data.share",
        path=loader.path,
        line=loader.line,
        cost=cost,
        gain=cost.gain(expected=ONE_INDEX if rows else MIDWAY),
    )


def _at_once(observation: Observation) -> bool:
    """Whether the data set is asked for whole batches already."""
    seen = observation.deep.loading if observation.deep else None
    parts = seen.parts if seen is not None else ()
    return any(part.kind == "own" and part.name.endswith(".__getitems__") for part in parts)


rule = Rule(
    code="sample-by-sample-batches",
    title="Batches are put together sample by sample",
    advice="Index the whole batch at once (__getitems__, or a sampler of index lists with batch_size=None).",
    explains=frozenset({"input-bound", "loader-in-training-process", "slow-dataset-line"}),
    page=__doc__ or "",
    check=check,
)
