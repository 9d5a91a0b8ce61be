"""Find what belongs to an evaluation between training steps: forwards without gradients, and all around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hotloop.observe.decode.intervals import Piece
from hotloop.observe.decode.spans import Span
from hotloop.probe.record.events import Kind

_TRAINS = frozenset({Kind.FORWARD, Kind.BACKWARD, Kind.OPTIMIZER})
_LOOP = _TRAINS | {Kind.DATA, Kind.ITERATOR, Kind.EVALUATE}


def evaluation(pieces: Sequence[Piece]) -> frozenset[int]:
    """Return the indices of the pieces that belong to evaluation.

    These are its forwards, the batches that they are given, and what is done with the results. What comes after the
    last one is taken for the evaluation's own (metrics of the whole pass) where the program trains on afterwards.
    """
    loop = [index for index, piece in enumerate(pieces) if piece.kind in _LOOP]
    scores = frozenset(_scores(pieces, loop))
    if not scores:
        return scores
    trains_on = pieces[loop[-1]].kind in _TRAINS
    return scores | frozenset(_around(pieces, scores, len(pieces) if trains_on else max(scores)))


def num_evaluations(pieces: Sequence[Piece]) -> int:
    """Return how often the model was evaluated; a pass over the data counts once."""
    marks = [piece.kind is Kind.EVALUATE for piece in pieces if piece.kind in _TRAINS | {Kind.EVALUATE}]
    return sum(now and not before for before, now in zip([False, *marks], marks, strict=False))


def scores_batches(spans: Sequence[Span]) -> bool:
    """Whether forwards without gradients are given batches of a loader: a policy that acts is given observations."""
    loop = [span.kind for span in spans if span.kind in _LOOP]
    return (Kind.DATA, Kind.EVALUATE) in pairwise(loop)


def _scores(pieces: Sequence[Piece], loop: Sequence[int]) -> Iterator[int]:
    """Yield forwards without gradients, and the fetches for them; the one that finds no more among them."""
    follows = _follows(pieces, loop)
    in_pass = False
    for index in loop:
        kind = pieces[index].kind
        in_pass = kind is Kind.EVALUATE or (
            kind is Kind.DATA
            and (follows[index] is Kind.EVALUATE or (in_pass and follows[index] not in _TRAINS))
        )
        if in_pass:
            yield index


def _follows(pieces: Sequence[Piece], loop: Sequence[int]) -> dict[int, Kind | None]:
    """Return what follows each piece of the loop; fetches from one loader in a row (one ahead) count as one."""
    follows: dict[int, Kind | None] = {}
    after: int | None = None
    for index in reversed(loop):
        in_a_row = (
            after is not None and pieces[after].kind is Kind.DATA and pieces[after].slot == pieces[index].slot
        )
        follows[index] = None if after is None else follows[after] if in_a_row else pieces[after].kind
        after = index
    return follows


def _around(pieces: Sequence[Piece], scores: frozenset[int], end: int) -> Iterator[int]:
    within = False
    for index, piece in enumerate(pieces[:end]):
        if piece.kind in _LOOP:
            within = index in scores
        elif within and piece.kind in {None, Kind.TRANSFER, Kind.COMMUNICATION}:
            yield index
