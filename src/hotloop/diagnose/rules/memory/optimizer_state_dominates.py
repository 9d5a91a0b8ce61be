"""Most of the peak is the optimizer's state.

## What it does
Adds up what tensors hold at the highest moment of a few training steps. It is a finding where the optimizer's state
holds more than any other class.

## Why it is slow
It is not: it is what limits the batch, and the device that the program fits on. Adam keeps two numbers of a parameter.

## When it is fine
Where the memory is there. State in 8 bits is another rounding: it has to pass a check that training learns the same.

## Example
```python
optimizer = torch.optim.AdamW(model.parameters())
```
Use instead:
```python
optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())
```

## References
- [Dettmers et al., 8-bit Optimizers via Block-wise Quantization](https://arxiv.org/abs/2110.02861)
- [PyTorch, ZeroRedundancyOptimizer](https://docs.pytorch.org/docs/stable/distributed.optim.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.memory import most, peak_account, saves
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation

BITS_LEFT = 1 / 4
"""8 of 32 bits; the blocks' scales are a hundredth more."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the optimizer's state with the other classes."""
    account = peak_account(observation)
    if most(account) != "optimizer_state":
        return
    saved = round((1 - BITS_LEFT) * account.held.by_class["optimizer_state"])
    yield Symptom(
        evidence=f"{account.share('optimizer_state'):.0%} of the peak is the optimizer's state, more than any other "
        f"class; 8 bits {saves(saved, account, 'three quarters of state in fp32')}",
        metric="memory.account.held",
        severity=Severity.INFO,
    )


rule = Rule(
    code="optimizer-state-dominates",
    title="Most of the peak is the optimizer's state",
    advice="Use 8-bit state (bitsandbytes, torchao), or share it among ranks (ZeroRedundancyOptimizer, FSDP).",
    optimization="optimizer_memory",
    page=__doc__ or "",
    check=check,
)
