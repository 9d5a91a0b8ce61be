"""The device has nothing to do for much of the time.

## What it does
Takes the share of the steady steps in which the driver saw no kernel running. Given as information, with the phase that
takes most of the host's time: another finding says why.

## Why it is slow
The device waits for data, for the host to launch work, or for a value that the host asked for.

## When it is fine
Small models on a large device: below its launch rate more work each launch is all that helps.

## Example
```python
for x, y in loader:  # decoded in the training process
    step(x.cuda(), y.cuda())
```
Use instead:
```python
loader = DataLoader(dataset, num_workers=8, pin_memory=True)
```

## References
- [NVIDIA, NVML: nvmlUtilization_t](https://docs.nvidia.com/deploy/nvml-api/structnvmlUtilization__t.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.facts import on_cpu
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation

BUSY = 0.5
"""Busy more than half of the time the device, not the wait for it, takes most of a step."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Read how busy the devices were; those that the program does not use are left out."""
    if on_cpu(observation):
        return
    seen = (
        observation.monitors.of_own_gpus("gpu_utilization_ratio") if observation.monitors is not None else {}
    )
    if not seen:
        raise Abstain("the utilization that a GPU's driver tells")
    busiest = max(monitor.mean for monitor in seen.values())
    if busiest < BUSY and observation.phases:
        phase, most = max(observation.phases.items(), key=lambda item: item[1].share)
        yield Symptom(
            evidence=(
                f"the busiest GPU ran a kernel {busiest:.0%} of the time; "
                f"the host spends {most.share:.0%} of the step in {phase.value}"
            ),
            metric="monitors.metrics.gpu_utilization_ratio.mean",
            severity=Severity.INFO,
        )


rule = Rule(
    code="idle-device",
    title="The device has nothing to do for much of the time",
    advice="See what the host does meanwhile: the phases, the call sites and the operators name it.",
    page=__doc__ or "",
    check=check,
)
