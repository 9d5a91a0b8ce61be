"""Cut a stretch of time into what the program did in it, in order, and what was in no span."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hotloop.observe.decode.spans import Span
from hotloop.probe.record.events import Kind


class Piece(NamedTuple):
    """Time of one kind; the pieces of a stretch add up to it."""

    kind: Kind | None
    """None: in no span."""
    slot: int
    begin_s: float
    seconds: float


def cut(spans: Sequence[Span], begin_s: float, end_s: float) -> list[Piece]:
    """Return the pieces of a stretch, by their beginnings; spans inside others keep their own time.

    Args:
        spans: those that ended in it, in any order.
        begin_s: where it begins; a span that began earlier counts from here.
        end_s: where it ends.
    """
    ordered = sorted(spans, key=lambda span: span.begin_s)
    named = [
        Piece(span.kind, span.slot, max(begin_s, span.begin_s), min(span.exclusive_s, span.end_s - begin_s))
        for span in ordered
        if span.end_s > begin_s
    ]
    gaps = list(_gaps(ordered, begin_s, end_s))
    return sorted([*_fitted(named, end_s - begin_s - sum(gap.seconds for gap in gaps)), *gaps], key=_begin)


def _begin(piece: Piece) -> float:
    return piece.begin_s


def _gaps(ordered: Sequence[Span], begin_s: float, end_s: float) -> Iterator[Piece]:
    covered_s = begin_s
    for span in ordered:
        if span.begin_s > covered_s:
            yield Piece(None, 0, covered_s, span.begin_s - covered_s)
        covered_s = max(covered_s, span.end_s)
    if end_s > covered_s:
        yield Piece(None, 0, covered_s, end_s - covered_s)


def _fitted(named: list[Piece], covered_s: float) -> list[Piece]:
    """Make the pieces fit what they cover: a span that began before the stretch holds more than its part in it."""
    total = sum(piece.seconds for piece in named)
    if total <= 0:
        return []
    return [piece._replace(seconds=piece.seconds * covered_s / total) for piece in named]
