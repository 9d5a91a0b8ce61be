"""Steps get longer and longer.

## What it does
Divides the steady steps into twelve parts, and compares the medians of their durations. It is a finding where they rise
all through, and the last third is a fifth longer than the first. Where late steps have more to do (calls of models,
samples, tokens), so much longer is allowed for, attention's square included. The cost is what steps take more than
that. A container of the program's own that grows with every step is named.

## Why it is slow
Something grows with the run, and each step goes through all of it: a list of all earlier losses that is summed up,
hooks that pile up, a history that is stacked anew, numbers that become so small that the processor handles them slowly
(denormals).

## When it is fine
A curriculum: longer sequences, larger pictures as training goes on; episodes that get longer as a policy learns.

## Example
```python
losses.append(loss.detach())
print(torch.stack(losses).mean())
```
Use instead:
```python
mean += (loss.detach() - mean) / (step + 1)
```

## References
- [PyTorch, torch.set_flush_denormal](https://docs.pytorch.org/docs/stable/generated/torch.set_flush_denormal.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from statistics import median

import numpy as np
import numpy.typing as npt

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import Cost, measured_step
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration
from hotloop.model.step_series import StepKind, StepSeries
from hotloop.observe.profile.container_line import growing_line

PARTS = 12
MIN_STEPS = 4 * PARTS
"""Fewer in a part have no median to speak of."""
RISING = 0.8
"""Kendall's tau over the parts: what a neighbour does to some of them in the middle gives about half."""
LONGER = 1.2
"""The same program varies by 5 to 15% on a quiet machine."""

MOST_POWER = 2
"""Attention compares all tokens with all: the time of a step grows with the square of them at most."""
_Chosen = npt.NDArray[np.bool_]


def check(observation: Observation) -> Iterator[Symptom]:
    """Compare early steps with late ones."""
    step = measured_step(observation)
    series, kept = _steady(observation)
    steps = np.frombuffer(series.duration_s, dtype="<f4")[kept].astype(float)
    if len(steps) < MIN_STEPS:
        raise Abstain(f"{MIN_STEPS} steady steps")
    parts = [float(np.median(part)) for part in np.array_split(steps, PARTS)]
    first, last = median(parts[: PARTS // 3]), median(parts[-PARTS // 3 :])
    if _tau(parts) < RISING or last < LONGER * first:
        return
    due = _more_to_do(observation, series, kept)
    if last < LONGER * first * due:
        return
    mean = float(np.mean(steps))
    share = max(0.0, 1.0 - first * due / mean)
    path, line, held = _held(observation)
    yield Symptom(
        evidence=f"{duration(first)} a step in the first third of {len(steps)}, {duration(last)} in the last{held}",
        metric="step.median_s",
        path=path,
        line=line,
        cost=Cost(share, 0.5 * share, max(0.0, 1.0 - parts[0] * due / mean, share), step.whole_s),
        gain=Cost(share, 0.5 * share, share, step.whole_s).gain(),
    )


def _steady(observation: Observation) -> tuple[StepSeries, _Chosen]:
    """Return the steps of the first process, and which of them are steady."""
    if not observation.series:
        raise Abstain("the single steps (a session of this version)")
    series = observation.series[0]
    kinds = np.frombuffer(series.kind, dtype=np.uint8)
    return series, (kinds == StepKind.STEADY) | (kinds == StepKind.UNTIMED)


def _more_to_do(observation: Observation, series: StepSeries, kept: _Chosen) -> float:
    """Return how many times as long late steps may take for what they have to do, at least 1.

    Raises:
        Abstain: batches vary, and their sizes are not known.
    """
    if "tokens" not in series.work and any(root.shapes_vary for root in observation.program.roots):
        raise Abstain("the sizes of batches whose shapes vary")
    most = 1.0
    for column in series.work.values():
        values = np.frombuffer(column, dtype="<f4")[kept]
        early, late = values[: len(values) // 3], values[-(len(values) // 3) :]
        early, late = early[~np.isnan(early)], late[~np.isnan(late)]
        if len(early) and len(late) and np.mean(early) > 0:
            most = max(most, float(np.mean(late) / np.mean(early)))
    return most**MOST_POWER


def _tau(values: list[float]) -> float:
    """Return Kendall's tau: 1 where each value is larger than all before it."""
    pairs = [(after > before) - (after < before) for before, after in combinations(values, 2)]
    return sum(pairs) / len(pairs)


def _held(observation: Observation) -> tuple[str | None, int | None, str]:
    containers = (observation.deep.growing_containers if observation.deep else None) or ()
    holder = next((one for one in containers if one.has_tensors), None)
    if holder is None:
        return None, None, ""
    said = f"; the {holder.kind} {holder.name} of {holder.function} grows with every step"
    return holder.path, growing_line(holder), said


rule = Rule(
    code="steps-get-longer",
    title="Steps get longer and longer",
    advice="Look for what grows with the run and is gone through in each step: lists, hooks, a history; keep running "
    "sums instead. torch.set_flush_denormal(True) rules denormals out.",
    page=__doc__ or "",
    check=check,
)
