"""Batches are padded further than to their longest sample.

## What it does
Compares the lengths of the samples that a collate function is given with the width of the batch that it returns; of
samples that are padded before, the value that stands at the end of each row tells how long they were. What
lies beyond the longest sample is computed by the model, forward and backward, for nothing.

## Why it is slow
A model takes as long for padding as for the rest. Texts of 25 words padded to a maximum of 256 cost ten
times what they need; attention costs more than that.

## When it is fine
Where each new width is compiled anew (CUDA graphs, TPUs), a few fixed widths are better than as many as there are
lengths. A width that is rounded up to a multiple of eight adds next to nothing.

## Example
```python
tokens = torch.full((len(rows), max_length), PAD)
```
Use instead:
```python
tokens = torch.full((len(rows), max(len(row) for row in rows)), PAD)
```

## References
- [Hugging Face, Padding and truncation](https://huggingface.co/docs/transformers/pad_truncation)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.lines.padding_line import allocating_line, padding_line
from hotloop.diagnose.price.cost import MATERIAL, phase_cost
from hotloop.diagnose.price.facts import step_loader
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.making_samples import timed_samples
from hotloop.model.deep import CallSite, LoadingPart
from hotloop.model.observation import Observation, Phase


def check(observation: Observation) -> Iterator[Symptom]:
    """Price what lies beyond the longest sample."""
    _, seen = timed_samples(observation)
    if seen.padding_beyond < MATERIAL:
        return
    computing = phase_cost(observation, Phase.TRANSFER, Phase.FORWARD, Phase.BACKWARD)
    cost = computing.times(seen.padding_beyond)
    collate = next((part for part in seen.parts if part.kind == "collate"), None)
    path, line = _place(observation, collate)
    yield Symptom(
        evidence=f"{seen.padding_beyond:.0%} of a batch lies beyond its longest sample, and {seen.padding:.0%} more "
        f"pads the others to that; {computing.share:.0%} of the step computes on the batch",
        metric="deep.loading.padding_beyond",
        path=path,
        line=line,
        cost=cost,
        gain=cost.gain(),
    )


def _place(observation: Observation, collate: LoadingPart | None) -> tuple[str | None, int | None]:
    """Return where a tokenizer is told to, or the collate function makes its largest tensor; else where it begins."""
    loader = step_loader(observation)
    told = padding_line(loader.path if loader else None, observation.program.script)
    if told is not None:
        return told
    if collate is None or collate.path is None or collate.line is None:
        return (loader.path, loader.line) if loader else (None, None)
    sites = observation.deep.call_sites if observation.deep else None
    made = [one for one in (sites.sites if sites else ()) if _makes_batch(one, collate.path, collate.line)]
    largest = max(made, key=lambda one: one.bytes_per_step or 0.0, default=None)
    if largest is not None:
        return largest.path, largest.line
    return collate.path, allocating_line(collate.path, collate.line) or collate.line


def _makes_batch(site: CallSite, path: str, begins: int) -> bool:
    return site.kind == "create" and site.loading and site.path == path and site.line >= begins


rule = Rule(
    code="padded-batches",
    title="Batches are padded further than to their longest sample",
    advice="Pad to the longest sample of the batch, not to the model's maximum.",
    page=__doc__ or "",
    check=check,
)
