"""Find the loop's rhythm: the shortest repeating cycle of events, and the event that ends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from hotloop.model.observation import Anchor
from hotloop.observe.decode.spans import Span
from hotloop.probe.record.events import Kind

MAX_PERIOD = 64
"""Longer cycles of optimizer steps than this were not seen in published scripts (WGAN critics take 5 to 25)."""
PATIENCE = 512
"""Backward calls without a step of an optimizer that exists, after which it is taken to be unused; published
accumulation loops take up to 40 to a step, LBFGS about 20."""
TOLERATED = 0.1
"""Share of events that may break the period: epoch ends, a last short accumulation."""
NAMES = {
    Kind.DATA: "data",
    Kind.TRANSFER: "transfer",
    Kind.FORWARD: "forward",
    Kind.EVALUATE: "evaluate",
    Kind.BACKWARD: "backward",
    Kind.COMMUNICATION: "communication",
    Kind.OPTIMIZER: "optimizer",
}


def find_anchor(
    spans: Sequence[Span], *, may_optimize: bool = False, under_way: bool = False
) -> Anchor | None:
    """Return the event that ends a step; None while too little has happened to tell.

    Args:
        spans: what one process did.
        may_optimize: the process still runs and has an optimizer that may yet take its first step: after an epoch of
            accumulation, the closures of an LBFGS step, or the roll-out of an episode.
        under_way: the process still runs: the first texts that it generates may be long.
    """
    slots = [step.slot for step in _of_longest_part([span for span in spans if span.kind is Kind.OPTIMIZER])]
    if len(slots) >= 2:
        return _anchor_of(slots, "optimizer")
    slots = [span.slot for span in spans if span.kind is Kind.BACKWARD]
    if len(slots) >= (PATIENCE if may_optimize else 4):
        return _anchor_of(slots, "backward")
    if slots or may_optimize:
        return None
    slots = [span.slot for span in spans if span.kind in {Kind.EVALUATE, Kind.FORWARD} and span.depth == 0]
    requests = sum(span.kind is Kind.REQUEST for span in spans)
    if generates(len(slots), requests):
        if requests >= 4:
            return Anchor("request", 0)
        if under_way and len(slots) < PATIENCE:
            return None
    return _anchor_of(slots, "forward") if len(slots) >= 4 else None


def _of_longest_part(steps: Sequence[Span]) -> Sequence[Span]:
    """Return the optimizers' steps of the part that takes longest: a teacher may be trained before its student.

    An optimizer that has not stepped for longer than any cycle is of a part that is over.
    """
    last = {step.slot: at + 1 for at, step in enumerate(steps)}
    over = sorted(at for at in last.values() if len(steps) - at > MAX_PERIOD)
    parts = [steps[begin:end] for begin, end in pairwise([0, *over, len(steps)]) if end > begin]
    return max(parts, key=lambda part: part[-1].end_s - part[0].begin_s, default=())


def generates(num_forwards: int, num_requests: int) -> bool:
    """Whether most forwards continue what the one before them was given: a text grows token by token."""
    return 0 < num_requests <= num_forwards / 2


def _anchor_of(slots: Sequence[int], kind: str) -> Anchor:
    period = shortest_period(slots)
    cycle = Counter(slots[:period])
    # The cycle ends with the slot that came into use last, if that one marks the cycle by itself.
    last = max(range(period), key=lambda index: slots.index(slots[index]))
    if cycle[slots[last]] == 1:
        return Anchor(kind, slots[last], 1)
    return Anchor(kind, -1, period)


def shortest_period(tokens: Sequence[int]) -> int:
    """Return the smallest p such that nearly every token equals the one p places before; 1 where there is none.

    The first cycle is left out of the comparison: programs start with extra work (a discriminator's head start).
    """
    for period in range(1, min(MAX_PERIOD, len(tokens) // 2) + 1):
        pairs = list(zip(tokens[period:], tokens, strict=False))
        broken = sum(now != before for now, before in pairs)
        if broken <= TOLERATED * len(pairs):
            return period
    return 1


def in_loop_order(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return a cycle as the loop has it: a collective after the optimizer that ends a step ends the turn.

    A step is cut behind its optimizer, so such a collective (the mean loss of all ranks) stands before the next batch.
    """
    first = next((at for at, token in enumerate(tokens) if token != NAMES[Kind.COMMUNICATION]), 0)
    return (*tokens[first:], *tokens[:first])


def fold(tokens: Sequence[str]) -> tuple[str, ...]:
    """Write a cycle with its repeats folded: `a b a b c` is `2x(a b)`, `c`."""
    folded: list[str] = []
    at = 0
    while at < len(tokens):
        length, times = _best_repeat(tokens, at)
        unit = " ".join(tokens[at : at + length])
        folded.append(unit if times == 1 else f"{times}x({unit})")
        at += length * times
    return tuple(folded)


def _best_repeat(tokens: Sequence[str], at: int) -> tuple[int, int]:
    best = (1, 1)
    for length in range(1, (len(tokens) - at) // 2 + 1):
        unit = tokens[at : at + length]
        times = 1
        while tokens[at + times * length : at + (times + 1) * length] == unit:
            times += 1
        if times > 1 and times * length > best[0] * best[1]:
            best = (length, times)
    return best


def shape(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the cycle without how often its parts repeat: closures and accumulation vary, the shape does not."""
    return tuple(part.split("x(", 1)[-1].rstrip(")") for part in fold(tokens))
