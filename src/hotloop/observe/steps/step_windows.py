"""Cut a timeline into steps at the anchor's events and sum up each step's phases."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hotloop.model.observation import Anchor, Phase
from hotloop.observe.decode.spans import Span, Stretch, Timeline
from hotloop.observe.steps.rhythm import NAMES, shape
from hotloop.probe.control.step_boundary import KINDS
from hotloop.probe.record.events import BOOKKEEPING, Kind

PHASES = {
    Kind.DATA: Phase.DATA,
    Kind.ITERATOR: Phase.DATA,
    Kind.TRANSFER: Phase.TRANSFER,
    Kind.FORWARD: Phase.FORWARD,
    Kind.BACKWARD: Phase.BACKWARD,
    Kind.COMMUNICATION: Phase.COMMUNICATION,
    Kind.OPTIMIZER: Phase.OPTIMIZER,
}
ASIDE = frozenset({Kind.SAVE, Kind.LOG, Kind.IMPORT, Kind.COMPILE, Kind.WORKERS_END})
"""What may happen anywhere in a step without being a part of its rhythm."""
WITHIN = {
    Kind.SAVE: "checkpoint_s",
    Kind.LOG: "logging_s",
    Kind.IMPORT: "import_s",
    Kind.COMPILE: "compilation_s",
    Kind.WORKERS_END: "epoch_boundary_s",
}
"""What is no phase of a step and has a name of its own."""
RARE = (Kind.EVALUATE, Kind.ITERATOR, Kind.SAVE, Kind.COMPILE)
"""What makes a step irregular, unless nearly every step has it."""


@dataclass(frozen=True, slots=True)
class Window:
    """One step, from the end of the step before to its own end, without the probe's pauses."""

    begin_s: float
    end_s: float
    duration_s: float
    phases: dict[Phase, float]
    """Seconds of each phase; what is in no span is `other`."""
    tokens: tuple[str, ...]
    parts: dict[Kind, float]
    """Seconds of what is no phase: `EVALUATE` out of the rhythm, `ITERATOR`, and those of `ASIDE`."""
    paused: bool
    regular: bool = True
    deep: bool = False
    """A profiler was on in it, or was taken off in it."""
    lean: bool = False
    """Only its end was recorded, and what is rare: it has no phases."""
    evaluated_s: float = 0.0
    """Of the forward, what keeps no graph: forwards without gradients belong to it where the usual step has them."""


def is_anchor(span: Span, anchor: Anchor) -> bool:
    """Whether a span is of the kind and slot that the anchor names."""
    kinds = {Kind.EVALUATE, Kind.FORWARD} if anchor.kind == "forward" else {KINDS[anchor.kind]}
    return span.kind in kinds and anchor.slot in (-1, span.slot)


def boundaries(timeline: Timeline, anchor: Anchor) -> list[int]:
    """Return the indices into `timeline.spans` of the spans that end a step."""
    hits = [index for index, span in enumerate(timeline.spans) if is_anchor(span, anchor)]
    return hits[anchor.every - 1 :: anchor.every]


def windows(timeline: Timeline, anchor: Anchor) -> list[Window]:
    """Return the steps of a process, the first (which holds the set-up) left out, each marked regular or not.

    A step is irregular when its shape differs from the usual one, a loader was iterated anew in it, a checkpoint was
    saved or something was compiled: those belong to the run's account, not to the step's. So is one whose phases were
    not recorded.
    """
    ends = boundaries(timeline, anchor)
    cut = [
        _window(timeline.spans[before + 1 : at + 1], timeline.spans[before].end_s)
        for before, at in itertools.pairwise(ends)
    ]
    rests = [rest.begin_s for rest in timeline.lean]
    return _judged([_looked_at(window, timeline.deep, timeline.lean, rests) for window in cut])


def _looked_at(
    window: Window, deep: Sequence[Stretch], lean: Sequence[Stretch], rests: Sequence[float]
) -> Window:
    """Mark a step that a profiler's window touches, and one that ends within a rest."""
    if any(each.begin_s < window.end_s and each.end_s > window.begin_s for each in deep):
        return replace(window, deep=True)
    before = bisect_left(rests, window.end_s) - 1
    return replace(window, lean=True) if before >= 0 and lean[before].end_s >= window.end_s else window


def _window(spans: Sequence[Span], begin_s: float) -> Window:
    end_s = spans[-1].end_s
    phases = dict.fromkeys(Phase, 0.0)
    parts: dict[Kind, float] = {}
    paused, held = 0.0, False
    for span in spans:
        if span.kind is Kind.PAUSE:
            paused += span.duration_s
            held = held or span.slot != BOOKKEEPING
        elif span.kind in PHASES:
            phases[PHASES[span.kind]] += span.exclusive_s
        if span.kind in ASIDE or span.kind in RARE:
            parts[span.kind] = parts.get(span.kind, 0.0) + span.exclusive_s
    _move_losses(spans, phases)
    duration = end_s - begin_s - paused
    _close_sum(phases, duration)
    tokens = tuple(NAMES[span.kind] for span in spans if span.kind in NAMES)
    return Window(begin_s, end_s, duration, phases, tokens, parts, held)


def _close_sum(phases: dict[Phase, float], duration: float) -> None:
    """Let what is in no span be `other`, and the phases add up to the step.

    A span that began before the step and ended in it (a framework's loop inside a forward) gives more than the step.
    """
    named = sum(phases.values())
    if named > duration:
        for phase in phases:
            phases[phase] *= duration / named
        return
    phases[Phase.OTHER] = duration - named


def _move_losses(spans: Sequence[Span], phases: dict[Phase, float]) -> None:
    """Count the time between the end of a forward and the backward that follows it, the loss, as forward.

    Inside another span, an optimizer's closure, that time has been counted as that span's own.
    """
    rhythm = [span for span in spans if span.kind not in ASIDE]
    for index, (span, after) in enumerate(itertools.pairwise(rhythm)):
        if span.kind is Kind.FORWARD and after.kind is Kind.BACKWARD and span.depth == after.depth:
            loss = max(0.0, after.begin_s - span.end_s - _aside_s(spans, span.end_s, after.begin_s))
            outer = _outer(rhythm, index)
            if outer is not None:
                phases[PHASES[outer.kind]] -= loss
            if outer is not None or not span.depth:
                phases[Phase.FORWARD] += loss


def _aside_s(spans: Sequence[Span], begin_s: float, end_s: float) -> float:
    """Return the time of what has a name of its own between two moments."""
    return sum(
        span.exclusive_s
        for span in spans
        if span.kind in ASIDE and span.begin_s >= begin_s and span.end_s <= end_s
    )


def _outer(spans: Sequence[Span], index: int) -> Span | None:
    """Return the phase's span around a span: it ends later, one level up."""
    if not spans[index].depth:
        return None
    wanted = spans[index].depth - 1
    found = next((span for span in spans[index + 1 :] if span.depth == wanted), None)
    return found if found is not None and found.kind in PHASES else None


def _judged(cut: Sequence[Window]) -> list[Window]:
    timed = [window for window in cut if not window.lean]
    if not timed:
        return list(cut)
    shapes = {tokens: shape(tokens) for tokens in {window.tokens for window in timed}}
    usual = Counter(shapes[window.tokens] for window in timed).most_common(1)[0][0]
    evaluates = any(NAMES[Kind.EVALUATE] in part for part in usual)
    if evaluates:
        cut = [_with_evaluation(window) for window in cut]
        timed = [window for window in cut if not window.lean]
    unusual = [kind for kind in RARE if kind is Kind.EVALUATE or not _in_most(timed, kind)]
    return [
        window
        if not (window.paused or window.deep or window.lean)
        and shapes[window.tokens] == usual
        and not any(kind in window.parts for kind in unusual)
        else replace(window, regular=False)
        for window in cut
    ]


def _with_evaluation(window: Window) -> Window:
    """Count forwards without gradients as forward, not as what is in no phase."""
    spent = window.parts.get(Kind.EVALUATE, 0.0)
    moved = min(spent, window.phases[Phase.OTHER])
    phases = {
        **window.phases,
        Phase.FORWARD: window.phases[Phase.FORWARD] + moved,
        Phase.OTHER: window.phases[Phase.OTHER] - moved,
    }
    parts = dict(window.parts)
    parts.pop(Kind.EVALUATE, None)
    return replace(window, phases=phases, parts=parts, evaluated_s=moved)


def _in_most(cut: Sequence[Window], kind: Kind) -> bool:
    return sum(kind in window.parts for window in cut) > len(cut) // 2
