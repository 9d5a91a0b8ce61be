"""Sequences of any length meet in one batch.

## What it does
Finds `pad_sequence` in a function that a loader of the same file uses as `collate_fn`, where neither a
sampler nor a batch sampler is given.

## Why it is slow
The batch is as long as its longest sequence; random batches of mixed lengths are often half padding. The
memory peak changes from batch to batch, and the allocator fragments.

## When it is fine
All sequences have about the same length.

## Example
```python
loader = DataLoader(texts, batch_size=32, shuffle=True, collate_fn=pad)
```
Use instead:
```python
loader = DataLoader(texts, batch_sampler=LengthBuckets(texts, 32), collate_fn=pad)
```

## References
- PyTorch, Performance Tuning Guide: balanced workload, pre-allocation for variable length:
  https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import keyword
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find loaders that pad random batches."""
    if program.names.call(call) != "torch.utils.data.DataLoader":
        return
    collate = keyword(call, "collate_fn")
    if collate is None or any(keyword(call, name) is not None for name in ("sampler", "batch_sampler")):
        return
    if not isinstance(collate, cst.Name) or not program.is_training_loader(call):
        return
    for function in program.steps.functions.get(collate.value, []):
        padded = [c for c in program.file.under(function, cst.Call) if _pads(program, c)]
        if padded:
            yield Hit(call, f"{collate.value} pads sequences of random lengths")


def _pads(program: Program, call: cst.Call) -> bool:
    return program.names.call(call) == "torch.nn.utils.rnn.pad_sequence"


rule = Rule(
    code="unsorted-lengths",
    title="Batches mix sequences of all lengths",
    severity=Severity.INFO,
    advice="Draw batches from buckets of similar length.",
    page=__doc__,
    words=("pad_sequence",),
    visits=(Visit(cst.Call, check),),
)
