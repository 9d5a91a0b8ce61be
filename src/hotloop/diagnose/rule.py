"""What a dynamic rule is: a manual page, and a check that reads an Observation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hotloop.diagnose.price.cost import Cost
from hotloop.model.finding import Severity
from hotloop.model.observation import Observation
from hotloop.model.ratio import Ratio


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """One place where a rule's pattern was measured."""

    evidence: str
    """The numbers seen, in one sentence without its full stop."""
    metric: str | None = None
    path: str | None = None
    line: int | None = None
    cost: Cost | None = None
    """None: the thing was seen, its price was not measured."""
    gain: Ratio | None = None
    """None: not predicted."""
    severity: Severity | None = None
    """None: by the cost."""
    advice: str | None = None
    """Where it differs from the rule's."""
    by_hand: bool = False
    """The rule's optimization does nothing here."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One dynamic rule; its file's docstring is its manual page."""

    code: str
    title: str
    advice: str
    page: str
    check: Callable[[Observation], Iterator[Symptom]]
    optimization: str | None = None
    fixed_by_it: bool = True
    """The optimization is the fix, and what it is predicted to bring is the finding's gain; False: one of several."""
    explains: frozenset[str] = frozenset()
    """Codes of coarser findings that this one is the cause of: they are not reported beside it, unless louder."""
    made_by_neighbours: bool = False
    """Other programs on the same cores make it look so: while they were busy it is information."""
    precedes: frozenset[str] = frozenset()
    """Codes of findings that help without naming what is slow: where equally loud, this one stands before them."""
    family: str = ""
