"""The program switches a debugging environment variable on.

## What it does
Finds assignments to `os.environ` that make every launch wait (`CUDA_LAUNCH_BLOCKING=1`), switch the caching
allocator off (`PYTORCH_NO_CUDA_MEMORY_CACHING=1`) or check every collective
(`TORCH_DISTRIBUTED_DEBUG=DETAIL`).

## Why it is slow
With blocking launches the host and the device never overlap; without the cache each tensor is a `cudaMalloc`,
which synchronizes; detailed checks add a collective to each collective.

## When it is fine
While an error is being located.

## Example
```python
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
```
Use instead:
```python
# set it in the shell, for the one run that needs it
```

## References
- [PyTorch, CUDA environment variables](https://docs.pytorch.org/docs/stable/cuda_environment_variables.html)
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.guards import is_switched
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import string
from hotloop.lint.rule import Edit, Hit, Rule, Visit
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety

_SLOW = {
    "CUDA_LAUNCH_BLOCKING": "1",
    "HIP_LAUNCH_BLOCKING": "1",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
    "TORCH_DISTRIBUTED_DEBUG": "DETAIL",
}


def check(program: Program, assign: cst.Assign) -> Iterator[Hit]:
    """Find debugging variables set in the source."""
    target = assign.targets[0].target
    if not isinstance(target, cst.Subscript) or program.names.of(target.value) != "os.environ":
        return
    index = target.slice[0].slice
    name = string(index.value) if isinstance(index, cst.Index) else None
    if name in _SLOW and string(assign.value) == _SLOW[name] and not is_switched(program.file, assign):
        yield Hit(assign, f"{name} is set to {_SLOW[name]}", edits=(Edit(assign, None),))


rule = Rule(
    code="debug-environment-set",
    title="A debugging environment variable is set in the source",
    severity=Severity.WARNING,
    advice="Set it in the shell for the one run that needs it.",
    optimization="debug_apis_off",
    fix=Safety.UNSAFE,
    page=__doc__,
    words=tuple(_SLOW),
    visits=(Visit(cst.Assign, check),),
)
