"""Attention is written out as two products and a softmax.

## What it does
Finds `softmax(q @ k.transpose(...))` whose result is multiplied with a third matrix, in one function: with
`@`, `torch.matmul`, `bmm` or `einsum`, also with scaling, masking and dropout in between. Files that already
use `scaled_dot_product_attention`, and functions that use the weights elsewhere (return them, keep them), are
left out.

## Why it is slow
The matrix of all pairs goes to memory and back four times, and is kept for the backward pass; a fused kernel
never writes it. Memory grows with the length instead of its square.

## When it is fine
The weights themselves are needed, or an unusual term is added to the scores (FlexAttention takes many of
those).

## Example
```python
att = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(d), dim=-1)
y = att @ v
```
Use instead:
```python
y = F.scaled_dot_product_attention(q, k, v)
```

## References
- PyTorch, scaled_dot_product_attention:
  https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
- Dao et al., [FlashAttention](https://arxiv.org/abs/2205.14135), 2022
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.patterns.attention.pattern import attentions


def check(program: Program, module: cst.Module) -> Iterator[Hit]:  # noqa: ARG001
    """Find the softmax between the two products."""
    if "scaled_dot_product_attention" in program.file.text:
        return
    for found in attentions(program.file.text):
        softmax = program.file.first_at(found.softmax.lineno, cst.Call)
        if softmax is not None and found.fusable:
            yield Hit(softmax, "softmax(q @ k) @ v, written out")


rule = Rule(
    code="handwritten-attention",
    title="Attention is written out by hand",
    severity=Severity.WARNING,
    advice="Use torch.nn.functional.scaled_dot_product_attention.",
    optimization="flash_attention",
    page=__doc__,
    words=("softmax", "Softmax"),
    visits=(Visit(cst.Module, check),),
)
