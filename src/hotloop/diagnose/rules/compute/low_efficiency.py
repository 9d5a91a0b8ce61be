"""The step reaches a small share of what the machine can compute.

## What it does
Sets the floating-point operations of a step against the peak that `hotloop machine` measured in the same precision, and
names the operators that take the time. Given as information: what to change is another finding's matter.

## Why it is slow
Time goes to operators that move data instead of multiplying (normalizations, activations, copies), to products too
small to fill the machine, or to everything that is not arithmetic at all.

## When it is fine
Recurrent and graph networks, small models, and programs whose work is not the model's.

## Example
```python
y = gelu(norm(x + residual))  # each operator reads and writes all of it
```
Use instead:
```python
model = torch.compile(model)  # one kernel for the chain
```

## References
- [Chowdhery et al. 2022, PaLM, section 4.1: MFU](https://arxiv.org/abs/2204.02311)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.operators import Operators, largest_shares
from hotloop.model.quantities import scaled

LOW = 0.2
"""Large language models trained at 21% (GPT-3) to 46% (PaLM) of the nominal peak (Chowdhery et al. 2022, table 3); the
peak that was measured is below the nominal one, so a share below 20% of it is low."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Read the share of the peak."""
    seen = observation.efficiency
    if seen is None:
        raise Abstain("the FLOPs of a step")
    if seen.mfu is None:
        raise Abstain(f"this machine's peak in {seen.precision} ({seen.why_no_peak})")
    if seen.mfu >= LOW:
        return
    operators = observation.deep.operators if observation.deep is not None else None
    yield Symptom(
        evidence=(
            f"{scaled(seen.flop_per_s)}FLOP/s are {seen.mfu:.1%} of the {scaled(seen.peak_flop_per_s or 0)}FLOP/s "
            f"measured here in {seen.precision}{_dominant(operators)}"
        ),
        metric="efficiency.mfu",
        severity=Severity.INFO,
    )


def _dominant(operators: Operators | None) -> str:
    if operators is None:
        return ""
    return f"; most of the operators' time: {largest_shares(operators.operators)}"


rule = Rule(
    code="low-efficiency",
    title="The step reaches a small share of the machine's peak",
    advice="Fuse what moves data (torch.compile), use a lower precision, and make the products larger.",
    made_by_neighbours=True,
    page=__doc__ or "",
    check=check,
)
