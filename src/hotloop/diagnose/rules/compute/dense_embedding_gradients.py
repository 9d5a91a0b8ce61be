"""A large embedding gets dense gradients, of which few rows are used.

## What it does
Watches the backward of look-ups, and counts the rows that were looked up against those of the table. Takes the time in
which the gradient of the whole table is made, and the table's part of the optimizer's and of what zeroes it.

## Why it is slow
Each step fills, reads and writes memory as large as the table, where some thousand rows have a gradient.

## When it is fine
Small tables. A table that has another use, such as the weight of the output layer, has dense gradients anyway: nothing
is said. With `sparse=True` Adam, momentum and weight decay do not move rows that a step did not use:
`torch.optim.SparseAdam` learns a little differently. Plain SGD and Adagrad are the same.

## Example
```python
self.items = nn.Embedding(1_000_000, 64)
```
Use instead:
```python
self.items = nn.Embedding(1_000_000, 64, sparse=True)  # with SGD, Adagrad or SparseAdam
```

## References
- [PyTorch, torch.nn.Embedding, `sparse`](https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html)
- [PyTorch, torch.optim.SparseAdam](https://docs.pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.dataflow_lines import UNSURE, Spent, dataflow_cost, dataflow_of
from hotloop.diagnose.lines.embedding_line import embedding_line
from hotloop.diagnose.lines.hot_line import samples_of
from hotloop.diagnose.price.cost import Cost, phase_share
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.dataflow import CodeLine, Dataflow, TableGradients
from hotloop.model.observation import Observation, Phase
from hotloop.model.quantities import duration

FEW = 0.1
"""Of the rows: a sparse gradient has an index of eight bytes for each row, and is coalesced (sorted) before use."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the tables together: one gradient left dense keeps most of the cost."""
    flow = dataflow_of(observation)
    tables = [one for one in flow.tables if one.used <= FEW * one.num * one.num_rows]
    if not tables:
        return
    largest = max(tables, key=lambda one: one.num_rows * one.width)
    cost = _cost(observation, flow, tables)
    at = _line(flow, largest)
    used = sum(one.used for one in tables) / sum(one.num * one.num_rows for one in tables)
    names = sorted({f"{one.num_rows:,} x {one.width}" for one in tables})
    yield Symptom(
        evidence=f"{used:.2%} of the rows ({', '.join(names)}) are looked up in a step; gradients of the whole take "
        f"{cost.share:.0%} of it ({duration(cost.seconds[0])})",
        path=at.path,
        line=at.line,
        cost=cost,
        gain=cost.gain(),
    )


def _cost(observation: Observation, flow: Dataflow, tables: list[TableGradients]) -> Cost:
    made = dataflow_cost(
        observation, flow, Spent(backward_s=sum(one.spent_s for one in tables) / flow.num_steps)
    )
    sizes = {(flow.lines[one.lines[-1]], one.num_rows, one.width) for one in tables}
    trained = sum(one.num_parameters for one in observation.program.optimizers)
    part = min(1.0, sum(rows * width for _, rows, width in sizes) / trained) if trained else 0.0
    spent = phase_share(observation, Phase.OPTIMIZER) + _zeroing_share(observation)
    share = min(1.0, made.share + part * spent)
    return Cost(share, share * (1.0 - UNSURE), min(1.0, share * (1.0 + UNSURE)), made.step_s)


def _zeroing_share(observation: Observation) -> float:
    """Return the share of the step in `zero_grad()` outside the optimizer's phase; 0 where no stack was sampled."""
    try:
        host, own = samples_of(observation, "train")
    except Abstain:
        return 0.0
    zeroing = [
        sample
        for sample in own
        if sample.phase != Phase.OPTIMIZER.value
        and any(host.frames[number].function == "zero_grad" for number in sample.stack)
    ]
    return sum(sample.spent_s for sample in zeroing) / sum(sample.spent_s for sample in own)


def _line(flow: Dataflow, table: TableGradients) -> CodeLine:
    users = [flow.lines[one] for one in table.lines if flow.lines[one].owner == "user"]
    at = users[-1] if users else flow.lines[table.lines[-1]]
    made = embedding_line(at.path, at.line)
    return at if made is None else CodeLine(at.path, made, at.function, at.owner)


rule = Rule(
    code="dense-embedding-gradients",
    title="A large embedding gets dense gradients",
    advice="nn.Embedding(..., sparse=True), with SGD without momentum, Adagrad or SparseAdam for these parameters.",
    explains=frozenset({"page-faults-in-step"}),
    page=__doc__ or "",
    check=check,
)
