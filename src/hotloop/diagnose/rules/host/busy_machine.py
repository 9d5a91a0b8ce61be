"""Other programs used the machine while this one was observed.

## What it does
Takes the share of the machine's processor time that went to processes which are not the program's. Given as
information: the program is not to blame, but its times are not those of a quiet machine. From a quarter on it comes
first, and findings that such a machine makes by itself (steps that vary, waiting for disks or ranks, operators below
their peak) are information.

## Why it is slow
A busy neighbour costs a factor, not a share, where threads spin at barriers: a two-thread step was 5 to 25 times slower
with one of two cores taken. Passive waiting takes most of that away.

## When it is fine
Below a tenth of the machine measurements were still usable.

## Example
```python
# another training on the same cores
```
Use instead:
```python
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported
```

## References
- [GNU libgomp, OMP_WAIT_POLICY](https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.stats.quietness import is_busy


def check(observation: Observation) -> Iterator[Symptom]:
    """Read what others took."""
    if observation.foreign_share is None:
        raise Abstain("the share of the machine that others take")
    if is_busy(observation.foreign_share):
        yield Symptom(
            evidence=f"other processes used {observation.foreign_share:.0%} of the CPU meanwhile",
            metric="foreign_share",
            severity=Severity.INFO,
        )


rule = Rule(
    code="busy-machine",
    title="Other programs used the machine",
    advice="Measure again when it is quiet, or let threads wait passively.",
    optimization="openmp_wait_policy",
    page=__doc__ or "",
    check=check,
)
