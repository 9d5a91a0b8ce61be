"""The hypervisor gave the machine's cores to others.

## What it does
Takes the share of processor time that this virtual machine wanted and did not get, over the steady steps. Given as
information: the program is not to blame, but its times are not those of a machine of its own.

## Why it is slow
The physical cores are shared. Threads that wait for one another wait for the one that was not running.

## When it is fine
Below 5%: a two-core machine under such a share still repeated itself within the 5 to 15% that runs differ by.

## Example
```python
# a burstable or oversold instance
```
Use instead:
```python
# an instance with dedicated cores
```

## References
- [Linux, proc_stat(5): steal](https://man7.org/linux/man-pages/man5/proc_stat.5.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation

MIN_SHARE_TO_REPORT = 0.05
"""Half of the 10% in foreign hands that comparisons on two cores still bore: stolen time hits all threads at once."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Read what was stolen."""
    share = observation.monitors.mean("cpu_steal_ratio") if observation.monitors is not None else None
    if share is None:
        raise Abstain("the processor time that the hypervisor takes")
    if share >= MIN_SHARE_TO_REPORT:
        yield Symptom(
            evidence=f"the hypervisor took {share:.0%} of the machine's processor time during the steady steps",
            metric="monitors.metrics.cpu_steal_ratio.mean",
            severity=Severity.INFO,
        )


rule = Rule(
    code="stolen-time",
    title="The hypervisor gave this machine's cores to others",
    advice="Measure on a machine whose cores are its own.",
    page=__doc__ or "",
    check=check,
)
