"""Every text is padded to the longest one possible.

## What it does
Finds a tokenizer call with `padding="max_length"`.

## Why it is slow
The model computes the padding like real tokens: a batch of 60-token texts padded to 512 is eight times the
work, and attention grows with the square.

## When it is fine
Static shapes are wanted (compiled models, XLA), or nearly all texts have the full length.

## Example
```python
batch = tokenizer(texts, padding="max_length", truncation=True)
```
Use instead:
```python
batch = tokenizer(texts, padding="longest", truncation=True, pad_to_multiple_of=8)
```

## References
- [Transformers, Padding and truncation](https://huggingface.co/docs/transformers/pad_truncation)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import keyword, string
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(_: Program, call: cst.Call) -> Iterator[Hit]:
    """Find tokenizer calls that pad to the model's maximum."""
    if string(keyword(call, "padding")) == "max_length" and "tokenizer" in (dotted(call.func) or "").lower():
        yield Hit(call, "texts are padded to the maximum, not to the longest of the batch")


rule = Rule(
    code="padding-to-maximum",
    title="Texts are padded to the model's maximum length",
    severity=Severity.INFO,
    advice="Pad to the longest text of the batch, and put texts of similar length together.",
    page=__doc__,
    words=("max_length",),
    visits=(Visit(cst.Call, check),),
)
