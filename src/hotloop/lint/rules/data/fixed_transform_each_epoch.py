"""The same fixed transforms are computed for every sample in every epoch.

## What it does
Finds a `Compose` of torchvision transforms for training that begins with two or more deterministic ones, such
as resizing and converting, before its first random one.

## Why it is slow
The result of the fixed part is the same in each epoch. Resizing a photograph costs more than all that
follows.

## When it is fine
One epoch, an image store too large to keep a second copy of, or evaluation: a `Compose` without any random
transform is left out.

## Example
```python
transform = T.Compose([T.Resize(256), T.CenterCrop(224), T.RandomHorizontalFlip(), T.ToTensor()])
```
Use instead:
```python
images = [center_crop(resize(image)) for image in images]     # once, kept as uint8
transform = T.Compose([T.RandomHorizontalFlip(), T.ToTensor()])
```

## References
- [Torchvision, Transforms v2](https://docs.pytorch.org/vision/stable/transforms.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_FIXED = words("Resize CenterCrop Grayscale Pad ToTensor PILToTensor ToImage Normalize FiveCrop TenCrop")
_DEAR = words("Resize CenterCrop Grayscale")


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find a costly fixed prefix before the first random transform."""
    full = program.names.call(call)
    if not (full.startswith("torchvision.transforms") and full.endswith(".Compose") and call.args):
        return
    listed = call.args[0].value
    if not isinstance(listed, cst.List):
        return
    names = [program.names.call(element.value).rpartition(".")[2] for element in listed.elements]
    prefix = _prefix(names)
    random_after = any(name.startswith("Random") for name in names[len(prefix) :])
    if random_after and len(prefix) > 1 and _DEAR & set(prefix):
        yield Hit(call, f"{', '.join(prefix)} give the same result in each epoch")


def _prefix(names: list[str]) -> list[str]:
    fixed: list[str] = []
    for name in names:
        if name not in _FIXED:
            break
        fixed.append(name)
    return fixed


rule = Rule(
    code="fixed-transform-each-epoch",
    title="Fixed transforms are computed anew in each epoch",
    severity=Severity.INFO,
    advice="Compute the fixed part once and keep its result.",
    page=__doc__,
    words=("Compose",),
    visits=(Visit(cst.Call, check),),
)
