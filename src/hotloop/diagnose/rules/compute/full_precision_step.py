"""The step computes in full float32 on hardware with faster units.

## What it does
Finds float32 matrix multiplications or convolutions without autocast where the processor's instruction set or the
accelerator has units for 16-bit formats. What it would bring is not predicted, so this is information: `tune` measures
it and checks that training still learns the same.

## Why it is slow
Units for bfloat16 multiply two to sixteen times faster, and half as many bytes move.

## When it is fine
Small models; losses that need the range; float64 on purpose, of which the rule says nothing.

## Example
```python
loss = loss_fn(model(x), y)
```
Use instead:
```python
with torch.autocast(device.type, dtype=torch.bfloat16):
    loss = loss_fn(model(x), y)
```

## References
- [PyTorch, Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import phase_share
from hotloop.diagnose.price.facts import on_cpu
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation, Phase
from hotloop.model.program import ModuleFacts
from hotloop.model.ratio import Ratio

_UNITS = {"amx_bf16", "avx512_bf16", "amx_fp16", "avx512_fp16", "sve2", "bf16"}
"""Flags of /proc/cpuinfo on which oneDNN and the Arm Compute Library use 16-bit multiplication."""
_DENSE = ("Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "MultiheadAttention", "LSTM", "GRU")
_FLOAT16, _BFLOAT16 = (7, 0), (8, 0)
"""Compute capabilities of the first with tensor cores (Volta), and of the first whose take bfloat16 (Ampere)."""
MOST = 0.5
"""Gains by hand on published scripts were 1.0 to 2.1x for the whole step."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare the model's types with the hardware's units."""
    program = observation.program
    if program.autocast_dtype is not None or not any(_dense_in_fp32(root) for root in program.roots):
        return
    units = _units(observation)
    if not units:
        return
    computing = phase_share(observation, Phase.FORWARD, Phase.BACKWARD)
    only_fp16 = _capability(observation) < _BFLOAT16
    yield Symptom(
        evidence=f"float32 without autocast in {computing:.0%} of the step, on hardware with {', '.join(units)}",
        metric="program.autocast_dtype",
        severity=Severity.INFO,
        gain=Ratio(1.0, 1.0, 1.0 / (1.0 - MOST * computing)),
        advice="Try autocast to float16 with gradient scaling (autocast_fp16)." if only_fp16 else None,
        by_hand=only_fp16,
    )


def _dense_in_fp32(root: ModuleFacts) -> bool:
    return root.dtypes == ("float32",) and any(root.layer_counts.get(name) for name in _DENSE)


def _units(observation: Observation) -> list[str]:
    known = observation.machine.get("isa" if on_cpu(observation) else "accelerators")
    if known is None:
        raise Abstain("the machine's instruction sets")
    if on_cpu(observation):
        return sorted(_UNITS & set(known))
    if _capability(observation) < _FLOAT16:
        return []
    used = [device.name for device in observation.memory.devices]
    return sorted(set(used)) or [str(one.get("name")) for one in known if isinstance(one, dict)]


def _capability(observation: Observation) -> tuple[float, ...]:
    """Return the compute capability of an NVIDIA GPU; infinite where it is another device or was not told."""
    program = observation.program
    is_told = not on_cpu(observation) and program.hip_version is None and program.capability is not None
    return program.capability if is_told and program.capability else (math.inf,)


rule = Rule(
    code="full-precision-step",
    title="Full float32 on hardware with faster units",
    advice="Try autocast to bfloat16.",
    optimization="autocast_bf16",
    page=__doc__ or "",
    check=check,
)
