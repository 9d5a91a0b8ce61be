"""GPUs talk to one another through the host.

## What it does
Finds `init_process_group("gloo")` (or `"mpi"`) in a program that names CUDA and not NCCL.

## Why it is slow
Gloo copies gradients of GPU tensors to the host, reduces them there, and copies them back; NCCL goes over
NVLink or directly through the network card.

## When it is fine
Training on CPUs, and second groups for small host objects.

## Example
```python
dist.init_process_group("gloo")
```
Use instead:
```python
dist.init_process_group("nccl")
```

## References
- [PyTorch, torch.distributed: which backend to use](https://docs.pytorch.org/docs/stable/distributed.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.guards import is_switched
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import argument, string
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity


def check(program: Program, call: cst.Call) -> Iterator[Hit]:
    """Find host backends in programs for CUDA."""
    if (
        program.names.call(call) != "torch.distributed.init_process_group"
        or "nccl" in program.file.text.lower()
    ):
        return
    backend = string(argument(call, 0, "backend"))
    if backend in {"gloo", "mpi"} and program.on_cuda and not is_switched(program.file, call):
        yield Hit(call, f"the backend is {backend}")


rule = Rule(
    code="slow-backend",
    title="Collectives of GPUs go through the host",
    severity=Severity.INFO,
    advice="Use the nccl backend for CUDA tensors.",
    page=__doc__,
    words=("init_process_group",),
    visits=(Visit(cst.Call, check),),
)
