"""Gradients of the last step are alive in the next forward.

## What it does
Looks which classes are there at the peak of the forward, in programs with one backward a step. It is a finding where
the forward reaches the peak of the step, and gradients are among what holds it.

## Why it is slow
`zero_grad()` after the forward, or `set_to_none=False`, keeps a copy of all trained parameters through the moment at
which activations hold most.

## When it is fine
Where gradients are added up over several backward passes: they have to stay. Such programs are left out.

## Example
```python
loss = loss_fn(model(x), y)
optimizer.zero_grad()
loss.backward()
```
Use instead:
```python
optimizer.zero_grad(set_to_none=True)
loss = loss_fn(model(x), y)
loss.backward()
```

## References
- [PyTorch, Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.memory import peak_account, saves
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.observe.profile.memory_remedies import MIN_SHARE


def check(observation: Observation) -> Iterator[Symptom]:
    """Look for gradients at the peak of the forward."""
    account = peak_account(observation)
    gradients = account.held.by_class.get("gradients", 0)
    if account.phase != "forward" or _adds_up(observation) or gradients < MIN_SHARE * account.peak_bytes:
        return
    others = [peak.peak_bytes for name, peak in account.phases.items() if name != "forward"]
    saved = min(gradients, account.peak_bytes - max(others, default=0))
    yield Symptom(
        evidence="the forward reaches the peak while the gradients of the step before are alive; released before it, "
        f"that {saves(saved, account, 'down to the peak of the next phase')}",
        metric="memory.account.held",
        severity=Severity.INFO,
    )


def _adds_up(observation: Observation) -> bool:
    """Whether a step has several backward passes."""
    words = " ".join(observation.step.rhythm) if observation.step else ""
    return words.count("backward") > 1 or "x(" in words


rule = Rule(
    code="gradients-held-in-forward",
    title="Gradients of the last step are alive in the next forward",
    advice="Call optimizer.zero_grad(set_to_none=True) right after the step, or before the forward.",
    optimization="zero_grad_none",
    fixed_by_it=False,
    page=__doc__ or "",
    check=check,
)
