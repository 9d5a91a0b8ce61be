"""Starting takes much of the run.

## What it does
Takes imports, set-up and the first step of a program that ran to its end. Given as information: it is the same for a
run of any length, so that what it costs is a matter of how long you train.

## Why it is slow
Reading and decoding a whole data set, building indices, downloading, importing what is not used.

## When it is fine
Trial runs.

## Example
```python
images = [decode(path) for path in paths]  # two minutes before the first step
```
Use instead:
```python
images = numpy.load("decoded.npy", mmap_mode="r")
```

## References
- [Python, -X importtime](https://docs.python.org/3/using/cmdline.html#cmdoption-X)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import measured_step
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.finding import Severity
from hotloop.model.observation import STARTUP_PARTS, Observation
from hotloop.model.quantities import duration

_PARTS = tuple(name for name in STARTUP_PARTS if name != "compilation_s")
"""Compilation is another rule's matter."""
MIN_SHARE_TO_REPORT = 0.25
"""Share of the run: with less, starting costs less than a third of what training itself takes."""


def check(observation: Observation) -> Iterator[Symptom]:
    """Set the start against the whole run."""
    measured_step(observation)
    if observation.total_steps is None:
        raise Abstain("a run that came to its own end (--full)")
    parts = {name: observation.run.parts.get(name, 0.0) for name in _PARTS}
    share = sum(parts.values()) / observation.run.wall_s
    if share >= MIN_SHARE_TO_REPORT:
        listed = ", ".join(
            f"{name[:-2].replace('_', ' ')} {duration(spent)}" for name, spent in parts.items() if spent
        )
        yield Symptom(
            evidence=f"{share:.0%} of the run of {duration(observation.run.wall_s)} is starting: {listed}",
            metric="run.parts.setup_s",
            severity=Severity.INFO,
        )


rule = Rule(
    code="slow-start",
    title="Starting takes much of the run",
    advice="Keep what is computed at the start; train longer in one run.",
    page=__doc__ or "",
    check=check,
)
