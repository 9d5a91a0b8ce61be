"""In which phase of the step a moment lies."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence

from hotloop.model.observation import Phase
from hotloop.observe.decode.spans import Span, Timeline
from hotloop.observe.steps.step_windows import PHASES
from hotloop.probe.record.events import Kind

NAMES = {
    **{kind: phase.value for kind, phase in PHASES.items()},
    Kind.EVALUATE: "evaluation",
    Kind.SAVE: "checkpoint",
}
LONGEST = 64
"""Spans before a moment that may still be open at it: they nest a few deep, those inside one come before it."""


class PhaseAt:
    """Answers for moments of one process's window.

    Args:
        timeline: the process's records.
        begin_s: the window.
        end_s: its end.
        infers: a forward without gradients is the step's own.
    """

    def __init__(self, timeline: Timeline, begin_s: float, end_s: float, *, infers: bool) -> None:
        spans = [span for span in timeline.spans if span.kind in NAMES and _touches(span, begin_s, end_s)]
        pieces = [(span.begin_s, span.end_s, span.depth, self._name(span, infers=infers)) for span in spans]
        pieces += [(*gap, 0, Phase.FORWARD.value) for gap in _losses(spans)]
        self._pieces = sorted(pieces)
        self._begins = [piece[0] for piece in self._pieces]

    def __call__(self, time_s: float) -> str:
        """Return the phase's name; what is in no span is `other`."""
        at = bisect_right(self._begins, time_s)
        around = [piece for piece in self._pieces[max(0, at - LONGEST) : at] if piece[1] >= time_s]
        return max(around, key=lambda piece: piece[2])[3] if around else Phase.OTHER.value

    def _name(self, span: Span, *, infers: bool) -> str:
        if infers and span.kind is Kind.EVALUATE:
            return Phase.FORWARD.value
        return NAMES[span.kind]


def _touches(span: Span, begin_s: float, end_s: float) -> bool:
    return span.end_s >= begin_s and span.begin_s <= end_s


def _losses(spans: Sequence[Span]) -> list[tuple[float, float]]:
    """Return the time between a forward and the backward that follows it: the loss counts as forward."""
    return [
        (before.end_s, after.begin_s)
        for before, after in itertools.pairwise(spans)
        if before.kind is Kind.FORWARD and after.kind is Kind.BACKWARD and after.begin_s > before.end_s
    ]
