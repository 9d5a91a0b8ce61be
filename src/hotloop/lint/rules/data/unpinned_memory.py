"""Batches are copied to the GPU from pageable memory.

## What it does
Finds a `DataLoader` for training without `pin_memory=True` in a program that names CUDA, and the Hugging Face
option `dataloader_pin_memory=False`.

## Why it is slow
The driver copies a pageable batch into a pinned buffer of its own first, and the host waits for the whole
transfer. From pinned memory the copy engine reads directly, and with `non_blocking=True` the host goes on.

## When it is fine
Training on a CPU, or batches so small that their copy does not show.

## Example
```python
loader = DataLoader(dataset, shuffle=True, num_workers=4)
```
Use instead:
```python
loader = DataLoader(dataset, shuffle=True, num_workers=4, pin_memory=True)
```

## References
- PyTorch, A guide on good usage of non_blocking and pin_memory:
  https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.datasets import gives_device_tensors
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument, has_star, is_literal, keyword
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety
from hotloop.source.calls import with_argument


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find training loaders that do not pin, where the program uses CUDA."""
    if is_literal(keyword(call, "dataloader_pin_memory"), "False"):
        yield Hit(call, "dataloader_pin_memory is False")
        return
    if program.names.call(call) != "torch.utils.data.DataLoader" or has_star(call) or not program.on_cuda:
        return
    pin = argument(call, 7, "pin_memory")
    if not program.is_training_loader(call) or (pin is not None and not is_literal(pin, "False")):
        return
    if gives_device_tensors(program, call):
        return
    seen = "pin_memory is False" if pin is not None else "pin_memory is not given, so it is False"
    yield Hit(call, seen, edits=(Edit(call, with_argument(call, "pin_memory", "True", 7)),))


rule = Rule(
    code="unpinned-memory",
    title="Batches for the GPU are not in pinned memory",
    severity=Severity.WARNING,
    advice="Give the loader pin_memory=True, and copy with non_blocking=True.",
    optimization="pinned_memory",
    fix=Safety.SAFE,
    page=__doc__,
    words=("DataLoader", "dataloader_pin_memory"),
    visits=(Visit(cst.Call, check),),
)
