"""The program limits itself to one thread.

## What it does
Finds `torch.set_num_threads(1)` and `OMP_NUM_THREADS` or `MKL_NUM_THREADS` set to `"1"` in a program that
does not name an accelerator.

## Why it is slow
On a CPU the matrix multiplications and convolutions of torch use one core out of many.

## When it is fine
Several ranks or environments share the cores: one thread for each was measured 2.4 times faster than two.

## Example
```python
torch.set_num_threads(1)
```
Use instead:
```python
torch.set_num_threads(os.cpu_count() // num_ranks)
```

## References
- PyTorch, CPU threading:
  https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import integer, string
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check_call(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find set_num_threads(1)."""
    sets_threads = program.names.call(call) == "torch.set_num_threads" and not program.on_device
    if sets_threads and call.args and integer(call.args[0].value) == 1:
        yield Hit(call, "set_num_threads(1)")


def check_assign(program: Program, assign: cst.Assign) -> Iterator[Hit]:
    """Find thread variables set to one."""
    target = assign.targets[0].target
    if (
        not isinstance(target, cst.Subscript)
        or program.names.of(target.value) != "os.environ"
        or program.on_device
    ):
        return
    index = target.slice[0].slice
    name = string(index.value) if isinstance(index, cst.Index) else None
    if name in {"OMP_NUM_THREADS", "MKL_NUM_THREADS"} and string(assign.value) == "1":
        yield Hit(assign, f"{name} is set to 1")


rule = Rule(
    code="one-thread-forced",
    title="The program limits itself to one thread",
    severity=Severity.INFO,
    advice="Give each process its share of the cores.",
    optimization="thread_count",
    page=__doc__,
    words=("set_num_threads", "NUM_THREADS"),
    visits=(Visit(cst.Call, check_call), Visit(cst.Assign, check_assign)),
)
