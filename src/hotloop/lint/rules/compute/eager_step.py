"""The model is never compiled.

## What it does
Finds a training loop in a program for CUDA whose source never mentions `torch.compile` or scripting. Given
once for each file, as information.

## Why it is slow
Eager mode launches a kernel for each operation and writes every intermediate result to memory; a compiler
fuses pointwise chains and can replay the whole step as one graph.

## When it is fine
Shapes that change with every batch, models whose time is in a few large kernels, short runs: compilation
costs from seconds to minutes. `hotloop tune` says after how many steps it pays.

## Example
```python
model = Net().cuda()
```
Use instead:
```python
model = Net().cuda()
model.compile()
```

## References
- [PyTorch, torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, _: cst.Module) -> Iterator[Hit]:
    """Find programs for CUDA that never compile."""
    text = program.file.text
    compiled = "compile" in text or "torch.jit" in text or "ccelerator" in text or "deepspeed" in text
    if program.on_cuda and not compiled and "Trainer" not in text and program.steps.loops:
        yield Hit(program.steps.loops[0], "no torch.compile anywhere in the file")


rule = Rule(
    code="eager-step",
    title="The training step is never compiled",
    severity=Severity.INFO,
    advice="Try torch.compile, and keep it if it is faster.",
    optimization="compile",
    page=__doc__,
    words=("cuda",),
    visits=(Visit(cst.Module, check),),
)
