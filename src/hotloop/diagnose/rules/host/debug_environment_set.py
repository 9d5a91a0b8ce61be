"""An environment variable makes every launch wait.

## What it does
Finds `CUDA_LAUNCH_BLOCKING=1` in a training process that computes on an accelerator. What it costs is not measured.

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
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.facts import on_cpu
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation

_NAME = "CUDA_LAUNCH_BLOCKING"


def check(observation: Observation) -> Iterator[Symptom]:
    """Read the variable."""
    if not on_cpu(observation) and observation.program.environment.get(_NAME, "0") not in {"", "0"}:
        yield Symptom(
            evidence=f"{_NAME}={observation.program.environment[_NAME]}",
            metric=f"program.environment.{_NAME}",
            severity=Severity.WARNING,
        )


rule = Rule(
    code="debug-environment-set",
    title="An environment variable makes every kernel launch wait",
    advice="Unset CUDA_LAUNCH_BLOCKING.",
    optimization="debug_apis_off",
    page=__doc__ or "",
    check=check,
)
