"""Where a candidate stands, and why."""

from __future__ import annotations

from enum import Enum

import msgspec

from hotloop.model.optimization import Candidate


class Status(Enum):
    """Where a candidate stands."""

    UNTRIED = "untried"
    OPEN = "open"
    """Measured, and not told from no change."""
    HELPS = "helps"
    """Shown to help: it can be part of a plan."""
    SLOWER = "slower"
    OVER = "over"
    """Measured, and beside the plan not within the limit: measuring it again changes nothing, another plan may."""
    LATE = "late"
    """Not warm in the time there was, and never measured."""
    SUBSTITUTE = "substitute"
    """Tried only in place of something that fails the parity check."""
    BLOCKED = "blocked"
    """Cannot be told now: whether it learns the same, or what it gains without other processes."""
    NO_EFFECT = "no effect"
    FAILED = "failed"
    PARITY = "parity"
    BEYOND_PLATEAU = "beyond the plateau"
    """A larger batch than the smallest that is about as fast."""

    @property
    def is_refused(self) -> bool:
        """Whether it is out for good."""
        return self in {Status.NO_EFFECT, Status.FAILED, Status.PARITY, Status.BEYOND_PLATEAU}

    @property
    def can_be_tried(self) -> bool:
        """Whether measuring it may still make it a part of the plan."""
        return self in {Status.UNTRIED, Status.OPEN, Status.HELPS, Status.SLOWER, Status.LATE}


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one candidate."""

    candidate: Candidate
    status: Status = Status.UNTRIED
    reason: str = ""
    mean: float = 0.0
    """Of its log gain."""
    deviation: float = 0.0
    """Of its log gain."""
    shift: float = 0.0
    """By how much the plan is faster, as a log ratio, than the program beside which it was measured."""
    num_measured: int = 0
    start_s: float = 0.0
    """What its first steps take more, in seconds: expected, then measured."""
    parity: bool | None = None
    """Whether it learns the same; None: not known."""
    switchable: bool = False
    """Whether it can be switched on and off in a running program."""

    @property
    def label(self) -> str:
        """Of the candidate."""
        return self.candidate.label
