"""Waits for a rank that comes late, told by when the ranks come to a collective, not by how long they are in it.

A span that ranks begin at different moments and end at the same one is where they wait for the last of them: a backward
with DDP's gradients, a forward with its buffers, a collective of the program's own. The rank that came last waited for
nobody. What the others were in it before it came is communication, whatever the span is called.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hotloop.model.observation import Phase
from hotloop.observe.decode.spans import Span, Timeline
from hotloop.observe.steps.step_windows import PHASES, Window
from hotloop.probe.record.events import Kind

TOGETHER = 0.5
"""Ends of a span lie together where they are apart by less than half of what its beginnings are: halfway between a span
that aligns ranks at once, and one that carries their distance on. Over all steps: a rank may be late in a few alone."""

Place = tuple[Kind, int]
"""The n-th span of a kind within a step."""


def with_waits(
    steps: Mapping[int, Sequence[Window]], timelines: Mapping[int, Timeline]
) -> dict[int, list[Window]]:
    """Return the steps with what each rank waits for later ones as communication.

    Args:
        steps: the same ones of each rank, by process.
        timelines: their records, on one clock.
    """
    ended = {pid: _ended(each, timelines[pid]) for pid, each in steps.items()}
    spans = {pid: [_placed(each) for each in every] for pid, every in ended.items()}
    together = _together(list(spans.values()))
    moved = {pid: list(each) for pid, each in steps.items()}
    for at in range(min(map(len, steps.values()), default=0)):
        for place in together:
            present = {pid: found[at][place] for pid, found in spans.items() if place in found[at]}
            if len(present) < len(spans):
                continue
            last_s = max(span.begin_s for span in present.values())
            for pid, span in present.items():
                until_s = min(last_s, span.end_s)
                waited_s = until_s - span.begin_s - _seen_s(ended[pid][at], span.begin_s, until_s)
                moved[pid][at] = _moved(moved[pid][at], PHASES[span.kind], waited_s)
    return moved


def moved_s(before: Sequence[Window], after: Sequence[Window]) -> list[float]:
    """Return the seconds that were moved out of each step's backward passes."""
    return [
        old.phases[Phase.BACKWARD] - new.phases[Phase.BACKWARD]
        for old, new in zip(before, after, strict=True)
    ]


def _ended(steps: Sequence[Window], timeline: Timeline) -> list[list[Span]]:
    """Return the spans that ended in each step."""
    ends = [span.end_s for span in timeline.spans]
    return [
        timeline.spans[bisect_right(ends, step.begin_s) : bisect_right(ends, step.end_s)] for step in steps
    ]


def _seen_s(spans: Sequence[Span], begin_s: float, end_s: float) -> float:
    """Return the time in collectives that a span calls itself, as FSDP's forward does: it is communication already."""
    return sum(
        max(0.0, min(span.end_s, end_s) - max(span.begin_s, begin_s))
        for span in spans
        if span.kind is Kind.COMMUNICATION and span.depth
    )


def _placed(spans: Sequence[Span]) -> dict[Place, Span]:
    seen: Counter[Kind] = Counter()
    found: dict[Place, Span] = {}
    for span in spans:
        if span.kind in PHASES and span.depth == 0:
            found[span.kind, seen[span.kind]] = span
            seen[span.kind] += 1
    return found


def _together(ranks: Sequence[Sequence[Mapping[Place, Span]]]) -> set[Place]:
    """Return the places at which ranks that came apart leave together."""
    begins: defaultdict[Place, float] = defaultdict(float)
    ends: defaultdict[Place, float] = defaultdict(float)
    for step in zip(*ranks, strict=False):
        for place in set.intersection(*(set(found) for found in step)):
            each = [found[place] for found in step]
            begins[place] += _apart([span.begin_s for span in each])
            ends[place] += _apart([span.end_s for span in each])
    return {place for place in begins if ends[place] < TOGETHER * begins[place]}


def _apart(moments: Sequence[float]) -> float:
    return max(moments) - min(moments)


def _moved(step: Window, phase: Phase, seconds: float) -> Window:
    if phase is Phase.COMMUNICATION:
        return step
    seconds = min(seconds, step.phases[phase])
    phases = {
        **step.phases,
        phase: step.phases[phase] - seconds,
        Phase.COMMUNICATION: step.phases[Phase.COMMUNICATION] + seconds,
    }
    return replace(step, phases=phases)
