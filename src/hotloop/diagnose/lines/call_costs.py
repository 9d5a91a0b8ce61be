"""Call sites of one kind, put together by line, with what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import Cost, measured_step
from hotloop.model.deep import CallSite
from hotloop.model.observation import Observation, StepTime
from hotloop.model.quantities import plain


@dataclass(frozen=True)
class LineOfCalls:
    """What one line calls."""

    path: str
    line: int
    sites: tuple[CallSite, ...]
    cost: Cost

    @property
    def calls(self) -> str:
        """As a reader says it: `.item() 3 times`."""
        return ", ".join(f"{site.call} {_times(site.count_per_step)}" for site in self.sites)

    @property
    def device(self) -> str:
        """Where its tensors live; a device where any does."""
        return next((site.device for site in self.sites if site.device != "cpu"), "cpu")


def lines_of(observation: Observation, kind: str) -> Iterator[LineOfCalls]:
    """Yield the lines that call a kind of thing in the step, outside of loading.

    Raises:
        Abstain: call sites were not looked at.
    """
    step = measured_step(observation)
    if observation.deep is None or observation.deep.call_sites is None:
        raise Abstain("the call sites of the step (a run without --no-deep and --full)")
    wanted = [site for site in observation.deep.call_sites.sites if site.kind == kind and not site.loading]
    wanted.sort(key=lambda site: (site.path, site.line))
    for (path, line), sites in groupby(wanted, key=lambda site: (site.path, site.line)):
        group = tuple(sites)
        yield LineOfCalls(path, line, group, _cost(group, step))


def _cost(sites: tuple[CallSite, ...], step: StepTime) -> Cost:
    share = sum(site.time_per_step_s for site in sites) / step.whole_s
    low = sum(site.low_s for site in sites) / step.whole_s
    high = sum(site.high_s for site in sites) / step.whole_s
    return Cost(min(1.0, share), min(1.0, low), min(1.0, high), step.whole_s)


def _times(count: float) -> str:
    number = plain(count)
    return "once a step" if number == "1" else f"{number} times a step"
