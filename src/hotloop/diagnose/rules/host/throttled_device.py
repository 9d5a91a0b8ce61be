"""The device held its clock back.

## What it does
Takes the share of samples over the steady steps in which the driver gave a reason for a lower clock. Heat and
hardware protection are a warning; a power limit is information, since most large GPUs reach theirs under load.

## Why it is slow
Everything on the device runs at the lower clock.

## When it is fine
Power limits that were set on purpose.

## Example
```python
# nvidia-smi -q -d PERFORMANCE: HW Thermal Slowdown: Active
```
Use instead:
```python
# more air, a lower power limit, or another slot
```

## References
- [NVIDIA, NVML: clocks event reasons](https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation

MIN_SHARE_TO_REPORT = 0.05
"""Share of the samples: at two a second and 10 s of steps that is one."""
_HARMLESS = "power cap"


def check(observation: Observation) -> Iterator[Symptom]:
    """Read the reasons."""
    seen = observation.monitors.of_own_gpus("gpu_throttled_ratio") if observation.monitors is not None else {}
    if not seen:
        raise Abstain("the clock reasons of a GPU's driver")
    for label, monitor in seen.items():
        if 'reason="' not in label or monitor.mean < MIN_SHARE_TO_REPORT:
            continue
        gpu, reason = (part.split('"')[1] for part in label.split(",", 1))
        yield Symptom(
            evidence=f"GPU {gpu} held its clock back for {monitor.mean:.0%} of the steady steps: {reason}",
            metric=f"monitors.metrics.gpu_throttled_ratio{{{label}}}.mean",
            severity=Severity.INFO if _HARMLESS in reason else Severity.WARNING,
        )


rule = Rule(
    code="throttled-device",
    title="The device held its clock back",
    advice="See to its cooling and power supply; measure again when it runs at its clock.",
    page=__doc__ or "",
    check=check,
)
