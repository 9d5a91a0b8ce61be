"""Findings: what holds a program back, where, and what that costs."""

from enum import Enum

import msgspec

from hotloop.model.ratio import Ratio


class Severity(str, Enum):
    """How loud a finding is; `warning` and above fail a CI gate."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that costs time or memory, at a line or a metric.

    Static rules, dynamic rules and the trace reader all produce this same value.
    """

    code: str
    """The rule's name, for the bad pattern, in kebab case: `sync-in-step`."""
    title: str
    severity: Severity
    path: str | None = None
    line: int | None = None
    """1-based; None where the finding is about a metric."""
    metric: str | None = None
    """The measured name it is about, e.g. `phases.data.share`; None where it is about a line."""
    cost_s: float | None = None
    """Seconds per step; None means not measured."""
    cost_low_s: float | None = None
    cost_high_s: float | None = None
    gain: Ratio | None = None
    """Predicted speed ratio of the whole step after the fix; None means not predicted."""
    evidence: str = ""
    """The numbers that the rule saw, in one sentence."""
    advice: str = ""
    """What to do, in one sentence."""
    optimization: str | None = None
    """The catalogue's name of the optimization that tries the fix; None: it has to be fixed by hand."""
