"""The loss over many classes makes the peak.

## What it does
Finds the operation that reaches the peak of a training step. It is a finding where that is the loss's, forward or
backward: log-probabilities of all classes, and the gradient of the logits, each as large as the logits.

## Why it is slow
A vocabulary of 50,000 words makes logits the largest tensors of a language model, and the loss holds three copies of
them at once. They are written and read again, and they limit the batch.

## When it is fine
Where the memory is there.

## Example
```python
loss = F.cross_entropy(logits.view(-1, vocabulary), targets.view(-1))
```
Use instead:
```python
def part(hidden, targets):
    return F.cross_entropy(head(hidden), targets, reduction="sum")


loss = sum(checkpoint(part, h, t, use_reentrant=False) for h, t in zip(hidden.chunk(8), targets.chunk(8)))
loss = loss / targets.numel()
```

## References
- [Liger Kernel, fused linear cross entropy](https://github.com/linkedin/Liger-Kernel)
- [Wijmans et al., Cut Your Losses in Large-Vocabulary Language Models](https://arxiv.org/abs/2411.09009)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.memory import peak_account, saves
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import byte_size
from hotloop.observe.profile.memory_remedies import MIN_SHARE, loss_lines


def check(observation: Observation) -> Iterator[Symptom]:
    """Look who reaches the peak."""
    account = peak_account(observation)
    by = account.reached_by
    if by is None or not loss_lines([by]):
        return
    lines = loss_lines(account.lines)
    held = sum(one.held_bytes for one in lines)
    if held < MIN_SHARE * account.peak_bytes:
        return
    largest = max(lines, key=lambda one: one.held_bytes)
    shape = "x".join(map(str, largest.shape or ()))
    yield Symptom(
        evidence=f"the peak is reached in the loss, whose tensors over all classes ({largest.dtype} {shape}) hold "
        f"{byte_size(held)}; in eight slices it {saves(7 * held // 8, account, 'seven eighths of them')}",
        metric="memory.account.reached_by",
        path=by.path,
        line=by.line,
        severity=Severity.INFO,
    )


rule = Rule(
    code="loss-makes-peak",
    title="The loss over many classes makes the peak of memory",
    advice="Compute the loss over slices, each under torch.utils.checkpoint, or with a fused linear cross-entropy.",
    optimization="chunked_cross_entropy",
    page=__doc__ or "",
    check=check,
)
