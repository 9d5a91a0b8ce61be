"""A profiler of the program's own looks at every step.

## What it does
Asks at each backward pass whether torch's profiler is on. It is a finding where that is so in half of them: a schedule
that records a few steps is not. Its price is not measured by itself; the cost given is what it costs usually.

## Why it is slow
The profiler notes each operator: about a microsecond by itself, tens of them with shapes and stacks. Its records grow
in host memory until it is stopped.

## When it is fine
The program is run to be profiled.

## Example
```python
with torch.profiler.profile(with_stack=True) as prof:
    train(model, loader)
```
Use instead:
```python
with torch.profiler.profile(schedule=torch.profiler.schedule(wait=5, warmup=2, active=3, repeat=1)) as prof:
    train(model, loader, prof.step)
```

## References
- [PyTorch, torch.profiler](https://docs.pytorch.org/docs/stable/profiler.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.hot_line import sampled_part
from hotloop.diagnose.price.cost import Cost, phase_cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.deep import HostSamples, Sample
from hotloop.model.observation import Observation, Phase

_OWN = ("torch/profiler/profiler.py", "torch/autograd/profiler.py", "torch/autograd/profiler_util.py")
MIN_SHARE_TO_REPORT = 0.5
"""Share of the backward passes."""
USUAL, LEAST, MOST = 0.4, 0.03, 0.75
"""Of what computes: 0.65 with torch.profiler and shapes, 0.75 with torch.autograd.profiler, of an MLP whose step takes
2.4 ms and 220 operators (torch 2.13, Zen 3 at 2.4 GHz); less of larger operators."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Read how often it was on."""
    profiled = observation.program.profiled
    if profiled is None:
        raise Abstain("backward passes")
    if profiled < MIN_SHARE_TO_REPORT:
        return
    computing = phase_cost(observation, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
    reading = sampled_part(observation, _is_reading)
    cost = Cost(
        min(1.0, computing.share * USUAL + reading),
        computing.low * LEAST + reading / 2,
        min(1.0, computing.high * MOST + reading * 1.5),
        computing.step_s,
    )
    yield Symptom(
        evidence=f"a profiler was on in {profiled:.0%} of the backward passes; what it looks at takes "
        f"{computing.share:.0%} of the step, and reading its records {reading:.0%} of the samples",
        metric="program.profiled",
        cost=cost,
        gain=cost.gain(least=1.0),  # the least is in the cost
    )


def _is_reading(host: HostSamples, sample: Sample) -> bool:
    """Whether a sample is in the profiler's own code, which starts, stops and sums up."""
    return any(host.frames[number].path.endswith(_OWN) for number in sample.stack)


rule = Rule(
    code="profiler-left-on",
    title="A profiler of the program's own looks at every step",
    advice="Take it out, or give it a schedule that records a few steps.",
    optimization="debug_apis_off",
    fixed_by_it=False,
    explains=frozenset({"memory-growing", "garbage-collected-in-step", "loop-outside-phases"}),
    page=__doc__ or "",
    check=check,
)
