"""An environment variable makes every launch wait.

## What it does
Finds `CUDA_LAUNCH_BLOCKING`, and of ROCm `HIP_LAUNCH_BLOCKING` and `AMD_SERIALIZE_KERNEL`, in a training process that
computes on an accelerator. What they cost is not measured.

## Why it is slow
The host waits for each kernel, so that nothing is queued and launch times add to the step.

## When it is fine
While you look for the kernel that fails.

## Example
```python
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
```
Use instead:
```python
os.environ.pop("CUDA_LAUNCH_BLOCKING", None)
```

## References
- [PyTorch, CUDA semantics, asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html)
- [ROCm, HIP environment variables](https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.facts import on_cpu
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation

_NAMES = ("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL")
"""The last is what torch's own errors advise on ROCm."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Read the variables."""
    environment = observation.program.environment
    for name in () if on_cpu(observation) else _NAMES:
        if environment.get(name, "0") not in {"", "0"}:
            yield Symptom(
                evidence=f"{name}={environment[name]}",
                metric=f"program.environment.{name}",
                severity=Severity.WARNING,
                advice=f"Unset {name}.",
            )


rule = Rule(
    code="debug-environment-set",
    title="An environment variable makes every kernel launch wait",
    advice="Unset the variable.",
    page=__doc__ or "",
    check=check,
)
