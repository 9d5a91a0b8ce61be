"""Batches are padded to a fixed length that none of their samples has.

## What it does
Compares the width of batches of sequences with their longest sample: the lengths that went into the collate function,
or, where samples are padded before, the columns at the end in which all rows hold one value. The model's forward and
backward are taken to be as long as the batch is wide.

## Why it is slow
The model computes padding. Attention over it costs the square.

## When it is fine
Shapes that have to be fixed (a compiled graph, an accelerator that compiles for each shape): widths in a few steps do
for those, too.

## Example
```python
tokens = tokenizer(texts, padding="max_length", return_tensors="pt")
```
Use instead:
```python
tokens = tokenizer(texts, padding="longest", return_tensors="pt")  # in the collate function
```

## References
- [Transformers, padding and truncation](https://huggingface.co/docs/transformers/pad_truncation)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.padding_line import padding_line
from hotloop.diagnose.price.cost import phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.making_samples import timed_samples
from hotloop.model.observation import Observation, Phase

MUCH = 0.1
"""Of the width: lengths rounded up to multiples of 8 or 64 leave less."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the width with the longest sample."""
    loader, seen = timed_samples(observation)
    if seen.unneeded < MUCH:
        return
    cost = phase_cost(observation, Phase.FORWARD, Phase.BACKWARD).times(seen.unneeded)
    collate = next((part for part in seen.parts if part.kind == "collate" and part.path), None)
    path, line = padding_line(
        (collate.path, collate.line) if collate is not None else (None, None),
        (loader.path, loader.line),
        observation.program.script,
    )
    yield Symptom(
        evidence=f"{seen.unneeded:.0%} of a batch's width is reached by none of its samples",
        metric="deep.loading.unneeded",
        path=path,
        line=line,
        cost=cost,
        gain=cost.gain(),
    )


rule = Rule(
    code="padded-to-fixed-length",
    title="Batches are padded to a length that no sample has",
    advice="Pad each batch to its own longest sample, in the collate function.",
    page=__doc__ or "",
    check=check,
)
