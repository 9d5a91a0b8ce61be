"""What a static finding costs, from the samples of the host's stacks under its lines."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.line_price import LinePrice, line_price
from hotloop.diagnose.price.cost import LEAST, MIDWAY, loudness
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration
from hotloop.observe.profile.parsed_sources import lines_of, parsed, statement_at

WHOLE = 0.9
"""Of all samples: lines under which so much is spent hold the training itself, and are no part of it."""
_COARSE = frozenset({"hot-line-outside-phases", "hot-line-before-backward", "loop-outside-phases"})
"""Findings that name a line without saying what is wrong with it."""
_LOOPS = frozenset({"python-loop-over-tensor", "parameter-loop-in-step", "cat-grows-in-loop"})
_WHOLE_STATEMENTS = _LOOPS | {"python-loop-in-getitem"}
"""What these find is the loop with its body; of others that stand in the head of a `with` or an `if`, the head."""
_OF_LOOPS = frozenset({"many-tiny-operators", "batch-too-small"})
"""What such loops are made of, or looks the same, and says less."""


@dataclass(frozen=True)
class Lines:
    """The lines of one statement."""

    path: str
    first: int
    last: int

    def hold(self, path: str | None, line: int | None) -> bool:
        """Whether a place is one of them."""
        return path == self.path and line is not None and self.first <= line <= self.last


def priced(
    observation: Observation, measured: Sequence[Finding], static: Iterable[Finding]
) -> tuple[list[Finding], list[Finding]]:
    """Put prices on static findings; return all findings with a price, and the static ones left without.

    Args:
        observation: with samples of the host's stacks; without, nothing is priced.
        measured: what the dynamic rules found; of these go those that say less of the same lines.
        static: whose lines hold what they cost.
    """
    found: list[tuple[Finding, Lines]] = []
    rest: list[Finding] = []
    for finding in static:
        lines = _lines(finding)
        price = _price(observation, lines) if lines is not None else None
        if price is None or lines is None or price.cost.share < LEAST:
            rest.append(finding)
        elif finding.code not in _LOOPS or price.saved is None or price.worth_naming:
            found.append((_with(finding, price), lines))
    kept = [one for one in measured if not _said_better(one, found)]
    if any(one.code in _LOOPS and one.severity is Severity.WARNING for one, _ in found):
        kept = [one for one in kept if one.code not in _OF_LOOPS]
    return [*kept, *(finding for finding, _ in found)], rest


def _said_better(coarse: Finding, found: Sequence[tuple[Finding, Lines]]) -> bool:
    return coarse.code in _COARSE and any(lines.hold(coarse.path, coarse.line) for _, lines in found)


def _with(finding: Finding, price: LinePrice) -> Finding:
    cost = price.cost
    value, low, high = cost.seconds
    return msgspec.structs.replace(
        finding,
        severity=loudness(cost),
        cost_s=value,
        cost_low_s=low,
        cost_high_s=high,
        gain=price.gain if finding.code in _LOOPS else cost.gain(expected=MIDWAY),
        evidence=f"{finding.evidence}; {cost.share:.0%} of the step by the samples under it ({duration(value)})",
    )


def _price(observation: Observation, lines: Lines) -> LinePrice | None:
    """Return the price of the lines; None: it cannot be told."""
    if observation.step is None:
        return None
    try:
        price = line_price(observation, lines.path, range(lines.first, lines.last + 1))
    except Abstain:
        return None
    return price if 0.0 < price.own.share < WHOLE else None


def _lines(finding: Finding) -> Lines | None:
    """Return the lines of the statement that begins or stands where the finding points; None: there is none."""
    tree = parsed(finding.path) if finding.path is not None else None
    if tree is None or finding.path is None or finding.line is None:
        return None
    found = statement_at(tree, finding.line)
    if found is None:
        return None
    body: list[ast.stmt] = getattr(found, "body", [])
    in_head = bool(body) and finding.line < body[0].lineno and finding.code not in _WHOLE_STATEMENTS
    last = max(found.lineno, body[0].lineno - 1) if in_head else lines_of(found)[-1]
    return Lines(finding.path, found.lineno, last)
