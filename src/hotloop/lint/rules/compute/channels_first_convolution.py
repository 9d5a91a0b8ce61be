"""Convolutions run in the channels-first layout.

## What it does
Finds a training loop in a program for CUDA that builds 2-D or 3-D convolutions itself, or takes a torchvision
model, and speaks of reduced precision but not of `channels_last`. Given once for each file, as information.

## Why it is slow
Tensor-core convolutions work on channels-last data: from channels-first each is wrapped in two transposes.

## When it is fine
Custom kernels for the other layout, some 3-D and depthwise convolutions, CPU inference.

## Example
```python
model = resnet50().cuda()
```
Use instead:
```python
model = resnet50().cuda().to(memory_format=torch.channels_last)
images = images.to(memory_format=torch.channels_last)
```

## References
- PyTorch, Channels last memory format:
  https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_CONVOLUTIONS = frozenset({"torch.nn.Conv2d", "torch.nn.Conv3d"})


def check(program: Program, _: cst.Module) -> Iterator[Hit]:
    """Find convolution programs in reduced precision that never choose a layout."""
    text = program.file.text
    if (
        not program.on_cuda
        or not program.mixed_precision
        or "channels_last" in text
        or not program.steps.loops
    ):
        return
    for call in program.file.all(cst.Call):
        full = program.names.call(call)
        if full in _CONVOLUTIONS or full.startswith("torchvision.models."):
            yield Hit(program.steps.loops[0], f"{full}, and no memory format anywhere in the file")
            return


rule = Rule(
    code="channels-first-convolution",
    title="Convolutions run channels-first",
    severity=Severity.INFO,
    advice="Try model and images in torch.channels_last.",
    optimization="channels_last",
    page=__doc__,
    words=("Conv2d", "Conv3d", "torchvision"),
    visits=(Visit(cst.Module, check),),
)
