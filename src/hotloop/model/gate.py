"""A gate for CI: raw samples of a program that was fast enough, and the verdict on it as it is now."""

from __future__ import annotations

from typing import Any

import msgspec

from hotloop.model.outcome import Outcome
from hotloop.model.ratio import Ratio

SCHEMA = 1


class GateRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the program."""

    steps_s: tuple[float, ...]
    """Every steady step, in order."""
    foreign_share: float | None = None
    """Of the machine, taken by others and by other guests of the hypervisor meanwhile; None: not measured."""
    delay_ratio: float | None = None
    """Seconds a second in which a thread of the program was ready to run and had no core; None: not told."""
    step_samples: float | None = None
    """That the models of a typical step were given; None: not seen, or of an earlier version."""
    torch_version: str | None = None


class ClassBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one class of machines."""

    machine: dict[str, Any]
    measured_at: str
    commit: str | None
    runs: tuple[GateRun, ...]


class GateBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """What a program is held to, by class of machines."""

    command: tuple[str, ...]
    classes: dict[str, ClassBaseline]
    """By the fingerprint of the machine."""
    schema: int = SCHEMA


class GateVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the program got slower."""

    outcome: Outcome
    passed: bool
    proven: bool
    """Whether the interval settles it; otherwise it passes because nothing was proven."""
    slowdown: Ratio
    """Time now over time then: above 1 is slower."""
    margin: float
    """What is tolerated, relative."""
    before_s: float
    """Geometric mean of the median steps of the baseline's runs, and of those now: their quotient is the slowdown."""
    now_s: float
    num_runs: tuple[int, int]
    sentence: str
    command: tuple[str, ...]
    baseline_commit: str | None = None
    foreign_share: float | None = None
    """Of the machine, that others used in the busiest of the runs; None: not measured."""
    noisy: bool = False
    """Others were so busy, now or when the baseline was made, that they can have changed the times."""
    alone: Ratio | None = None
    """The slowdown without all that others can have cost the runs of now; None: the machine was quiet."""
    schema: int = SCHEMA

    @property
    def word(self) -> str:
        """What is said of it first."""
        if self.outcome is Outcome.PASSED:
            return "passed" if self.proven else "passed: a slowdown is not proven"
        return "FAILED" if self.outcome is Outcome.FAILED else "could not judge"
