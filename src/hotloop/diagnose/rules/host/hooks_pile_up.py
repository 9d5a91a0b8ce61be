"""Hooks are registered with every step and never removed.

## What it does
Counts the hooks of all modules and parameters some steps apart, by their code, and notes the line that registers them.
Takes the share of the samples of the host's stacks that lies in those hooks, without what one step's hooks need.

## Why it is slow
Every call of the module runs the hooks of all earlier steps: steps get longer for as long as the program runs.

## When it is fine
Never: each step needs its own hooks at most.

## Example
```python
def features(self, x):
    self.layer.register_forward_hook(self.keep)
    return self.model(x)
```
Use instead:
```python
def features(self, x):
    handle = self.layer.register_forward_hook(self.keep)
    try:
        return self.model(x)
    finally:
        handle.remove()
```

## References
- [PyTorch, torch.nn.Module.register_forward_hook](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.hot_line import sampled_share, samples_of
from hotloop.diagnose.price.cost import Cost, loudness, measured_step
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.deep import GrowingHooks, HostSamples, Sample
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import average, plain


def check(observation: Observation) -> Iterator[Symptom]:
    """Take each place that registers hooks again and again."""
    if observation.deep is None or observation.deep.growing_hooks is None:
        raise Abstain("the hooks of the program's modules (a run without --no-deep and --full)")
    for one in observation.deep.growing_hooks:
        cost = _cost(observation, one)
        yield Symptom(
            evidence=f"{average(one.per_step, 'hook')} more with each step ({one.hook}, {plain(one.num)} by now)"
            + (f"; {cost.share:.0%} of the step is in those of earlier steps" if cost else ""),
            path=one.path,
            line=one.line,
            cost=cost,
            gain=cost.gain() if cost else None,
            severity=Severity.WARNING if cost is None else loudness(cost),
        )


def _cost(observation: Observation, one: GrowingHooks) -> Cost | None:
    """Return the time in the hooks of earlier steps; None: the stacks were not sampled."""
    try:
        host, own = samples_of(observation, "train")
    except Abstain:
        return None
    inside = sum(sample.spent_s for sample in own if _is_in(host, sample, one))
    share = inside / sum(sample.spent_s for sample in own) * max(0.0, 1.0 - one.per_step / one.num)
    return sampled_share(share, sum(sample.num for sample in own), measured_step(observation).whole_s)


def _is_in(host: HostSamples, sample: Sample, one: GrowingHooks) -> bool:
    frames = (host.frames[number] for number in sample.stack)
    return any(
        frame.path == one.hook_path
        and frame.function == one.hook
        and one.hook_line <= frame.line <= one.hook_last
        for frame in frames
    )


rule = Rule(
    code="hooks-pile-up",
    title="Hooks are registered with every step and never removed",
    advice="Register them once, before the loop, or remove each handle when its step is over (handle.remove()).",
    explains=frozenset({"memory-growing", "steps-get-longer"}),
    page=__doc__ or "",
    check=check,
)
