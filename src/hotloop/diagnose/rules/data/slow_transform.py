"""One transform holds most of the time in which a sample is made.

## What it does
Times every transform of the data set for a second, in the process that runs it, without the decoding that happens to
be done within it (PIL decodes an image when its pixels are first asked for). Names the slowest by its class and line,
where it takes a quarter of a sample's time or more.

## Why it is slow
It runs for every sample, in Python, on one image or row at a time.

## When it is fine
Where the step does not wait for data it costs nothing: below 5% it is information.

## Example
```python
transform = Compose([ToTensor(), Normalize(mean, std), GaussianBlur(23)])
```
Use instead:
```python
transform = Compose([ToTensor(), Normalize(mean, std)])
blur = GaussianBlur(23)  # on the whole batch, on the device: images = blur(images.to(device))
```

## References
- [torchvision, transforms v2: on batches, on a device](https://docs.pytorch.org/vision/stable/transforms.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.price.cost import MIDWAY
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.diagnose.rules.data.making_samples import MIN_SHARE_TO_REPORT, said_wait, timed_samples, wait_for
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration

_FIXED = "It draws no random numbers: do it once before training and keep the result (cached_preprocessing)."


def check(observation: Observation) -> Iterator[Symptom]:
    """Take the most expensive transform."""
    loader, seen = timed_samples(observation)
    slowest = next((part for part in seen.parts if part.kind == "transform"), None)
    if slowest is None or slowest.share < MIN_SHARE_TO_REPORT:
        return
    cost = wait_for(observation, loader, [slowest])
    yield Symptom(
        evidence=f"{slowest.name} takes {duration(slowest.time_per_sample_s)} of the {duration(seen.sample_s)} that a "
        f"sample takes ({slowest.share:.0%}), and {said_wait(observation)}",
        metric="deep.loading.parts",
        path=slowest.path or loader.path,
        line=slowest.line if slowest.path else loader.line,
        cost=cost,
        gain=cost.gain(expected=MIDWAY),
        advice=_FIXED if slowest.random is False else None,
    )


rule = Rule(
    code="slow-transform",
    title="One transform takes much of a sample's time",
    advice="Do it on whole batches, on the device, or with a cheaper equivalent.",
    optimization="cached_preprocessing",
    fixed_by_it=False,
    page=__doc__ or "",
    check=check,
)
