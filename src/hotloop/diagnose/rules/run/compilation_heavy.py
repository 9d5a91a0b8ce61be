"""Compilation takes much of the run.

## What it does
Sets the time in `torch.compile` against a run that came to its end. Given as information, since it is paid once: a
longer run pays it back.

## Why it is slow
Tracing, code generation and a C++ or Triton compiler, again for each shape that is not seen as dynamic.

## When it is fine
Long runs; a compiler cache that is kept from run to run.

## Example
```python
model = torch.compile(model)
for x in batches_of_every_length: ...
```
Use instead:
```python
model = torch.compile(model, dynamic=True)
```

## References
- [PyTorch, torch.compile troubleshooting](https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import measured_step
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

MIN_SHARE_TO_REPORT = 0.25
"""Share of the run: with less, compilation costs less than a third of what training itself takes."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Set compilation against the whole run."""
    measured_step(observation)
    spent = observation.run.parts.get("compilation_s")
    if not spent:
        if any(root.compiled for root in observation.program.roots):
            raise Abstain("the time of compilation in the account of the run")
        return
    if observation.total_steps is None:
        raise Abstain("a run that came to its own end (--full)")
    share = spent / observation.run.wall_s
    if share >= MIN_SHARE_TO_REPORT:
        yield Symptom(
            evidence=f"{share:.0%} of the run of {duration(observation.run.wall_s)} is compilation",
            metric="run.parts.compilation_s",
            severity=Severity.INFO,
        )


rule = Rule(
    code="compilation-heavy",
    title="Compilation takes much of the run",
    advice="Keep the compiler's cache (TORCHINDUCTOR_CACHE_DIR), avoid new shapes, or train longer in one run.",
    page=__doc__ or "",
    check=check,
)
