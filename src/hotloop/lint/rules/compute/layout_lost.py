"""A channels-last program goes back to channels-first inside the model.

## What it does
Finds `.contiguous()` without a memory format in a `forward`, in a file that uses `channels_last`.

## Why it is slow
`.contiguous()` means the channels-first layout: the tensor is copied there, and the next convolution copies
it back.

## When it is fine
The tensor is no image: after flattening, or in attention.

## Example
```python
x = self.conv1(x).contiguous()
```
Use instead:
```python
x = self.conv1(x).contiguous(memory_format=torch.channels_last)
```

## References
- PyTorch, Channels last memory format:
  https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method, receiver
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find plain .contiguous() on what a convolution gave."""
    owner = receiver(call)
    if method(call) != "contiguous" or call.args or not isinstance(owner, cst.Call):
        return
    function = program.file.enclosing(call, cst.FunctionDef)
    if function is None or function.name.value != "forward":
        return
    if "conv" in (dotted(owner.func) or "").lower():
        yield Hit(call, "a convolution's output is copied to the channels-first layout")


rule = Rule(
    code="layout-lost",
    title="The channels-last layout is given up inside the model",
    severity=Severity.INFO,
    advice="Give contiguous() the memory format, or leave it out.",
    optimization="channels_last",
    page=__doc__,
    words=("channels_last",),
    visits=(Visit(cst.Call, check),),
)
