"""All that a session knows, as one value; what comes next is a function of it and of the time that is left."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from hotloop.model.optimization import Candidate
from hotloop.stats.verdict import needed_errors
from hotloop.tune.confirm.set_pairs import MAX_SETS, MIN_SETS
from hotloop.tune.design.costs import Costs
from hotloop.tune.design.patterns import exclude
from hotloop.tune.executor import PlanSteps
from hotloop.tune.goals.gains import Gains
from hotloop.tune.goals.objective import Objective
from hotloop.tune.search.evidence import PEAK_SD, Evidence, shifted
from hotloop.tune.search.status import Known


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Where the proof of the plan stands."""

    num_sets: int = 0
    """Of fresh processes that tell of it."""
    log_gain: float = 0.0
    """Their estimate; 0: there is none."""
    held: bool = False
    half_width: float = math.inf
    """Of the interval of the log gain."""
    hopeless: bool = False
    """No more sets are run: it failed, departed, is over the limit, had as many as may be, or other processes keep
    them from telling."""
    parity: bool | None = None
    """Whether it learns the same; None: not decided."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What is known by now."""

    known: tuple[Known, ...]
    speeds: Gains
    """Log gains of time."""
    peaks: Gains | None = None
    """Log gains of memory; None: it is not counted."""
    objective: Objective = Objective()
    evidence: tuple[Evidence, ...]
    plan: PlanSteps
    """Believed to be the fastest, of what is shown to help."""
    proof: Proof
    """Of that plan."""
    begun: tuple[tuple[PlanSteps, Proof], ...] = ()
    """Plans for which sets of their own were run, and none of whose steps is likelier to cost what is wanted than to
    gain it."""
    guesses: Mapping[str, Proof] = {}
    """Of each candidate as a plan of its own, by its label: what one alone is proven by needs no other measurement."""
    blocked: PlanSteps = ()
    """The plan that would be proven if other processes left the machine; empty: none keep a plan from its proof."""
    proven: float = 0.0
    """Log gain of the best plan that was proven; 0 as long as none was."""
    conflicts: Mapping[str, frozenset[str]] = {}
    interactions: Mapping[str, frozenset[str]] = {}
    pair_error: float = 0.035
    """Standard deviation of what one pair of processes shows of a log ratio of times."""
    hold_sd: float = 0.05
    """Of the log time of a hold."""
    floor: float = 0.0
    """Relative difference below which nothing is claimed."""
    passive: bool = False
    """Screening waits passively at barriers."""

    @property
    def gains(self) -> Gains:
        """Log gains of what is wanted now: of time or memory; with a limit of memory first the one, then the other."""
        return self.peaks if self.objective.by_memory and self.peaks is not None else self.speeds

    @property
    def error(self) -> float:
        """Standard deviation of what one pair of processes shows of what is wanted now."""
        return PEAK_SD if self.objective.by_memory else self.pair_error

    def half_width(self, num: int) -> float:
        """Return half of the interval of a log gain of time after so many sets."""
        return needed_errors(num, MIN_SETS, MAX_SETS) * self.pair_error / math.sqrt(num)

    @property
    def least(self) -> float | None:
        """Log gain below which a proof says nothing; None: that of the least gain that is claimed."""
        return self.objective.least(self.proven)

    def gain_beside(self, plan: PlanSteps, base: PlanSteps = ()) -> float:
        """Return the expected log gain of one plan over a second one."""
        return self.gains.gain(_labels(plan), _labels(base))[0]

    def unsure(self, one: Known) -> float:
        """Return the deviation of a candidate's log gain beside the plan."""
        return shifted(one.mean, one.deviation, one.shift) if one.num_measured else one.deviation

    def displaced(self, one: Candidate, plan: PlanSteps) -> PlanSteps:
        """Return the steps of a plan that a candidate cannot be on together with."""
        return tuple(step for step in plan if step != one and exclude(step, one, self.conflicts))

    def rival(self, one: Candidate) -> float:
        """Return the log gain that the plan loses where a candidate takes the place of its steps."""
        gone = self.displaced(one, self.plan)
        left = tuple(step for step in self.plan if step not in gone)
        return max(0.0, self.gain_beside(self.plan, left)) if gone else 0.0

    def of(self, candidate: Candidate) -> Known:
        """Return what is known of a candidate."""
        return next(one for one in self.known if one.label == candidate.label)


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """What sets and holds take."""

    costs: Costs
    hold_s: float
    room: int
    """Arms that can be alive at once."""
    max_rounds: int | None
    """Rounds until the program ends by itself; None: it does not."""
    curve_rounds: int
    """Rounds after which losses can be compared."""
    grace_s: float
    """Seconds that the last set of a proof may end late."""
    num_originals: int
    """Arms with nothing on that the next set begins with."""
    num_perturbed: int = 0
    """Those of them that run with rounding noise."""

    def rounds(self, wanted: int) -> int:
        """Return so many rounds, or as many as the program has."""
        return min(wanted, self.max_rounds or wanted)


def _labels(plan: PlanSteps) -> frozenset[str]:
    return frozenset(step.label for step in plan)
