"""Heavy random augmentation runs on the host, one sample at a time.

## What it does
Finds transforms that a data set's `__getitem__` does by chance (`if random.random() < p`), and a `Compose` of
torchvision transforms that holds an expensive random one: colour jitter, blur, elastic or affine deformation,
RandAugment and its relatives.

## Why it is slow
Each of these costs from one to tens of milliseconds of a core for each image. As a batch on the device the
same augmentation is a few kernels.

## When it is fine
The workers keep up with the device.

## Example
```python
transform = v1.Compose([v1.RandomResizedCrop(224), v1.ColorJitter(0.4, 0.4, 0.4), v1.ToTensor()])
```
Use instead:
```python
transform = v1.Compose([v1.RandomResizedCrop(224), v1.PILToTensor()])
batch_transform = v2.ColorJitter(0.4, 0.4, 0.4)     # in the loop, on the device
```

## References
- [Torchvision, Transforms v2](https://docs.pytorch.org/vision/stable/transforms.html)
- [Kornia, Augmentation](https://kornia.readthedocs.io/en/latest/augmentation.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.datasets import in_getitem
from hotloop.lint.infer.program import Program
from hotloop.lint.name_lists import words
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_HEAVY = words(
    """
    ColorJitter GaussianBlur ElasticTransform RandomAffine RandomPerspective RandomRotation RandAugment
    AutoAugment TrivialAugmentWide AugMix RandomErasing
    """
)

_CHANCES = words("random.random random.uniform numpy.random.random numpy.random.rand numpy.random.uniform")


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find expensive random transforms in a Compose."""
    full = program.names.call(call)
    if full in _CHANCES and in_getitem(program, call) and _decides(program, call):
        yield Hit(call, f"{full} decides for each sample on the host")
        return
    if not (full.startswith("torchvision.transforms") and full.endswith(".Compose")):
        return
    inner = [program.names.call(other) for other in program.file.under(call, cst.Call)]
    heavy = sorted({name.rpartition(".")[2] for name in inner if name.startswith("torchvision.")} & _HEAVY)
    if heavy:
        yield Hit(call, f"{', '.join(heavy)} for each sample on the host")


def _decides(program: Program, call: cst.Call) -> bool:
    """Whether the number is compared in an `if`: a transform that is done by chance."""
    branch = program.file.enclosing(call, cst.If)
    return branch is not None and program.file.inside(call, branch.test)


rule = Rule(
    code="augmentation-on-host",
    title="Expensive random augmentation runs on the host",
    severity=Severity.INFO,
    advice="If the loader is the bottleneck, augment the whole batch on the device.",
    holds_its_cost=True,
    page=__doc__,
    words=("Compose", "__getitem__"),
    visits=(Visit(cst.Call, check),),
)
