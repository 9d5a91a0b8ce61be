"""Most of the peak is activations that wait for the backward.

## What it does
Adds up what tensors hold at the highest moment of a few training steps. It is a finding where activations that the
forward saved for the backward hold more than half of it, at the line that saved most.

## Why it is slow
It is not: it is what limits the batch, and the device that the program fits on.

## When it is fine
Where the memory is there. Recomputing activations costs time, usually a fifth to a third of the step.

## Example
```python
for block in self.blocks:
    x = block(x)
```
Use instead:
```python
for block in self.blocks:
    x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
```

## References
- [PyTorch, Activation checkpointing](https://docs.pytorch.org/docs/stable/checkpoint.html)
- [Chen et al., Training Deep Nets with Sublinear Memory Cost](https://arxiv.org/abs/1604.06174)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.memory import peak_account, saves
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size, counted
from hotloop.observe.profile.memory_remedies import loss_lines

HALF = 0.5
"""More than all other classes together."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the saved activations with the peak."""
    account = peak_account(observation)
    if account.share("activations") <= HALF:
        return
    lines = account.activations
    first = lines[0] if lines else None
    saved = account.held.by_class["activations"] - sum(one.held_bytes for one in loss_lines(lines))
    where = f", {byte_size(first.held_bytes)} in {counted(first.num, 'tensor')} of this line" if first else ""
    yield Symptom(
        evidence=f"{account.share('activations'):.0%} of the peak are activations saved for the backward{where}; "
        f"recomputing them {saves(saved, account, 'what the model saves; the input of each block stays')}",
        metric="memory.account.held",
        path=first.path if first else None,
        line=first.line if first else None,
        severity=Severity.INFO,
    )


rule = Rule(
    code="activations-dominate",
    title="Most of the peak is activations",
    advice="Recompute blocks in the backward (torch.utils.checkpoint), use autocast, or smaller micro-batches.",
    optimization="activation_checkpointing",
    page=__doc__ or "",
    check=check,
)
