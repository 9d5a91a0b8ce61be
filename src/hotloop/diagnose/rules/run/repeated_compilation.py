"""torch.compile works again and again while the program trains.

## What it does
Counts compilations after the second step, when everything that a step consists of has been compiled once, and takes
their share of the loop.

## Why it is slow
Each new shape, each Python value that code was specialized for and that has changed, means tracing, code generation and
a compiler; after a number of them (`torch._dynamo.config.recompile_limit`) the function runs without compilation.

## When it is fine
A second compilation, at the first new shape, makes sizes dynamic; after it there should be none. An evaluation that
compiles the model for itself counts once, too.

## Example
```python
model = torch.compile(model)
for x, y in batches_of_every_length: ...
```
Use instead:
```python
model = torch.compile(model, dynamic=True)
```

## References
- [PyTorch, Dealing with recompilations](https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import between_steps
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

USUAL = 2
"""One at the first new shape, which makes sizes dynamic, and one for the model's evaluation."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Take what was compiled when nothing new should be."""
    run = observation.run
    if run.num_recompilations is None or run.recompilation_s is None:
        raise Abstain("an account of the run that names compilation")
    if not run.num_recompilations:
        return
    cost = between_steps(observation, run.recompilation_s)
    yield Symptom(
        evidence=(
            f"{run.num_recompilations} of {run.num_compilations} compilations came after the second step "
            f"and took {duration(run.recompilation_s)}, {cost.share:.0%} of the loop"
        ),
        metric="run.num_recompilations",
        cost=cost,
        gain=cost.gain(),
        severity=None if run.num_recompilations > USUAL else Severity.INFO,
    )


rule = Rule(
    code="repeated-compilation",
    title="torch.compile works again while the program trains",
    advice="Compile with dynamic=True, pad to a few sizes, or keep changing Python values out of compiled code.",
    page=__doc__ or "",
    check=check,
)
