"""The optimizer's step makes the peak.

## What it does
Compares the peaks of the phases of a training step. It is a finding where the optimizer's is the highest, and
temporaries are part of it.

## Why it is slow
The `foreach` implementation, the default on a device, computes on lists of whole tensors: its intermediate values take
as much as all parameters once or twice.

## When it is fine
Where the memory is there: `foreach` is faster than a loop over the parameters. `fused` is faster still, and makes no
lists.

## Example
```python
optimizer = torch.optim.AdamW(model.parameters())
```
Use instead:
```python
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
```

## References
- [PyTorch, torch.optim: foreach and fused](https://docs.pytorch.org/docs/stable/optim.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.memory import peak_account, saves
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size
from hotloop.observe.profile.memory_remedies import MIN_SHARE


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the peak of the optimizer with the next highest."""
    account = peak_account(observation)
    temporaries = account.held.by_class.get("temporaries", 0)
    if account.phase != "optimizer" or temporaries < MIN_SHARE * account.peak_bytes:
        return
    others = [peak.peak_bytes for name, peak in account.phases.items() if name != "optimizer"]
    saved = min(temporaries, account.peak_bytes - max(others, default=0))
    by = account.reached_by
    yield Symptom(
        evidence=f"the optimizer's step is the highest phase, with {byte_size(temporaries)} of temporaries; without "
        f"them it {saves(saved, account, 'down to the peak of the next phase')}",
        metric="memory.account.phases",
        path=by.path if by else None,
        line=by.line if by else None,
        severity=Severity.INFO,
    )


rule = Rule(
    code="optimizer-step-makes-peak",
    title="The optimizer's step makes the peak of memory",
    advice="Use fused=True, or foreach=False.",
    optimization="fused_optimizer",
    fixed_by_it=False,
    page=__doc__ or "",
    check=check,
)
