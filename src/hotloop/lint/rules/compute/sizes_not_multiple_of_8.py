"""A matrix size does not fit the tensor cores.

## What it does
Finds literal sizes of 64 and more that are no multiple of 8: of linear layers and convolutions in files that
speak of reduced precision, and of embeddings (from 1,000 rows) anywhere, as in a vocabulary of 50257.

## Why it is slow
Tensor cores work on tiles; rows that do not begin at a multiple of 16 bytes (8 half-precision numbers) are
read by a slower kernel.

## When it is fine
The layer is a small part of the model. Sizes below 64 are dominated by the launch and are left out.

## Example
```python
wte = nn.Embedding(50257, 768)
```
Use instead:
```python
wte = nn.Embedding(50304, 768)     # padded to a multiple of 64
```

## References
- NVIDIA, Matrix multiplication background: tensor core requirements:
  https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import integer
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_SMALLEST = 64  # one tile of a tensor-core GEMM kernel; below it padding costs as much as it gains
_SMALLEST_VOCABULARY = 1000  # smaller tables are no vocabularies and their products cost nothing
_LAYERS = frozenset({"torch.nn.Linear", "torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"})


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find layer sizes that do not fill tiles."""
    full = program.names.call(call)
    if full == "torch.nn.Embedding":
        sizes, smallest = [integer(arg.value) for arg in call.args[:1]], _SMALLEST_VOCABULARY
    elif full in _LAYERS and program.mixed_precision:
        sizes, smallest = [integer(arg.value) for arg in call.args[:2]], _SMALLEST
    else:
        return
    odd = [size for size in sizes if size is not None and size >= smallest and size % 8]
    if odd:
        named = " and ".join(f"{size} (next multiple: {size + 8 - size % 8})" for size in odd)
        yield Hit(call, f"{full.rpartition('.')[2]} of size {named}")


rule = Rule(
    code="sizes-not-multiple-of-8",
    title="A layer's size is no multiple of 8",
    severity=Severity.INFO,
    advice="Pad it to a multiple of 8, better 64.",
    page=__doc__,
    words=("Linear", "Conv", "Embedding"),
    visits=(Visit(cst.Call, check),),
)
