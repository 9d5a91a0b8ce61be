"""Sets of arms, run once and kept, with the time they take learned."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from statistics import median

import msgspec

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.optimization import Numerics
from hotloop.model.tuning import Contention, FailureKind
from hotloop.stats.robust import mad_sd
from hotloop.tune.design.costs import Costs
from hotloop.tune.executor import (
    BudgetOver,
    Executor,
    PlanSteps,
    RanSet,
    Rounds,
    SetFailed,
    SetOrder,
    SetRecord,
    Steer,
)
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.verdict.baseline import Originals

GRACE = 0.05
"""Of the budget: a set may end so much late rather than be good for nothing."""
NOISY = 0.3
"""Of a set's blocks."""
HELD_UP = 1.5
"""Times the observed step: passive waiting does not pay."""
STEADY, STEADY_ROUNDS = 0.006, 6
"""Standard error of each arm's log ratio to the first arm from which more rounds of a set are not worth their time:
pairs of processes differ by more (half a per cent to three on programs of 1 to 100 ms)."""
_OVER = {FailureKind.TIMEOUT, FailureKind.LATE, FailureKind.ENDED}
"""Once the program has been measured: its steps or its time are over."""


class EndedEarly(Exception):  # noqa: N818 - an observation, not an error
    """The program came to its own end before anything was measured; nobody had seen how long it is.

    Args:
        num_steps: that it takes.
    """

    def __init__(self, num_steps: int) -> None:
        super().__init__(num_steps)
        self.num_steps = num_steps


class SetRunner:
    """Runs sets of arms for search and confirmation.

    Args:
        executor: runs them.
        ledger: keeps them, and the time there is.
        costs: told what they take.
        max_rounds: rounds until the program ends by itself; None: it does not.
        curve_rounds: rounds after which an arm's losses can be compared.
    """

    def __init__(
        self,
        executor: Executor,
        ledger: Ledger,
        costs: Costs,
        max_rounds: int | None,
        curve_rounds: int = 0,
    ) -> None:
        self._executor = executor
        self._ledger = ledger
        self.costs = costs
        self.max_rounds = max_rounds
        self.curve_rounds = curve_rounds
        self.originals = Originals()
        self.contentions: list[Contention] = []
        self.seen: list[RanSet] = []
        """All sets so far."""
        self._passive_s: float | None = None
        """Of a step of the original that waited passively, in the latest set of that kind."""

    def left_s(self) -> float:
        """Return the time that is left."""
        return self._ledger.budget.left()

    @property
    def grace_s(self) -> float:
        """Seconds that the last set of a proof may end late."""
        return GRACE * self._ledger.budget.seconds

    def original_peak(self) -> int | None:
        """Return the largest peak of the program as it is; None: not measured."""
        peaks = [
            found[0]
            for one in self.seen
            for at in one.record.originals(one.order)
            if at not in one.order.perturbed and (found := one.record.peak(at)) is not None
        ]
        return max(peaks, default=None)

    def knows(self, key: str) -> bool:
        """Whether this set was run in the session before."""
        return self._ledger.knows(key)

    def room(self, wanted: int) -> int:
        """Return how many arms can be alive at once, of so many."""
        return next((num for num in range(wanted, 2, -1) if self._executor.fits(num)), 2)

    def noisy(self) -> bool:
        """Whether others were busy during much of the latest set."""
        latest = self.contentions[-1] if self.contentions else None
        return latest is not None and latest.num_noisy > NOISY * max(1, latest.num_blocks)

    def held_up_by_waiting(self, observed_s: float | None) -> bool:
        """Whether passive waiting makes the step longer than it was observed to be, in seconds."""
        if self._passive_s is None or observed_s is None:
            return False
        return self._passive_s > HELD_UP * observed_s

    def wants_perturbed(self, *, unsettled: bool = False) -> bool:
        """Return whether one more run with rounding noise would tell how far runs part: the program has to last for it.

        Args:
            unsettled: of a plan nothing is decided with the runs there are.
        """
        lasts = self.max_rounds is None or self.max_rounds >= self.curve_rounds
        wanted = self.originals.wants_perturbed(unsettled=unsettled)
        return wanted and (lasts or not self.originals.num_perturbed)

    def first_originals(
        self, plans: Sequence[PlanSteps], *, undecided: bool = True, unsettled: bool = False
    ) -> tuple[list[PlanSteps], tuple[int, ...]]:
        """Return the arms with nothing on that a set begins with, and which of them are perturbed.

        The first set shows the program against itself beside what it is run for: twice, and where numbers can
        change with rounding noise, for the floor of its losses; as the second one where all plans change numbers, and
        as a third one where some do not, which are held to what repeats exactly. Later sets need one, and one more with
        noise as long as nobody knows how far runs of this program part and that is `undecided` of a plan.
        """
        wanted = self.wants_perturbed(unsettled=unsettled) and (undecided or not self.originals.num_perturbed)
        perturbed = _touching(plans) and wanted
        alike = perturbed and all(_touching([plan]) for plan in plans if plan)
        num_plain = 1 if self.originals.measured or alike else 2
        spare = self.room(num_plain + perturbed + 1) - 1
        num_plain = max(1, min(num_plain, spare - perturbed))
        perturbed = perturbed and spare > num_plain
        originals: list[PlanSteps] = [()] * (num_plain + perturbed)
        return originals, (num_plain,) if perturbed else ()

    def measure_floor(self, plans: Sequence[PlanSteps], rounds: int) -> None:
        """Run the program against itself alone, where the sets to come have no room for that."""
        order = SetOrder(plans=((), ()), max_rounds=rounds, perturbed=(1,) if _touching(plans) else ())
        self.run("floor", order, lambda _: range(2))

    def run(self, key: str, order: SetOrder, steer: Steer) -> tuple[SetOrder, SetRecord]:
        """Run a set, or return what it gave; the order is that of the time when it was run.

        Raises:
            BudgetOver: the time was over before it gave anything.
            HotloopError: the program cannot be run as it is.
        """
        done = self._ledger.once(key, RanSet, lambda: self._run(order, steer))
        order, outcome = done.order, done.record
        self.costs.learn(order, outcome, self._ledger.seconds(key))
        self.originals.add(order, outcome)
        self.contentions.append(outcome.contention)
        self.seen.append(done)
        if order.passive:
            steps_s = [arm.step_s for at in outcome.originals(order) if (arm := outcome.arm(at)) is not None]
            self._passive_s = min(steps_s, default=None)
        return order, outcome

    def _run(self, order: SetOrder, steer: Steer) -> RanSet:
        order = msgspec.structs.replace(order, num_perturbed=self.originals.num_perturbed)
        outcome = self._executor.run(order, steer)
        if isinstance(outcome, SetFailed):
            raise self._failed(outcome)
        return RanSet(order=order, record=outcome)

    def _failed(self, outcome: SetFailed) -> Exception:
        failure = outcome.failure
        if failure.kind is FailureKind.ENDED and failure.num_steps is not None and self.max_rounds is None:
            return EndedEarly(failure.num_steps)
        timely = failure.kind not in _OVER or not self.originals.measured
        if self.left_s() <= 0 or not timely:
            return BudgetOver(failure.message)
        if self.originals.measured:
            return HotloopError(
                f"the program failed as it is, after trials in which it had not: {failure.message}\n{failure.log_end}",
                "something that it needs changes: a file, a port, memory, a random number; its output ends above",
                ExitCode.PROGRAM_FAILED,
            )
        return HotloopError(
            f"the program could not be run in trials: {failure.message}\n{failure.log_end}",
            "it must be able to run twice at once, and take enough steps; its output ends above",
            ExitCode.PROGRAM_FAILED,
        )


def _touching(plans: Sequence[PlanSteps]) -> bool:
    """Whether numbers may change; a random data set draws others in loader workers, which are of `TOLERANCE`."""
    steps = [step for plan in plans for step in plan]
    return any(step.touches_numbers or step.numerics is not Numerics.EXACT for step in steps)


def while_time(
    left_s: Callable[[], float],
    num_arms: int,
    min_rounds: int,
    grace_s: float = 0.0,
    curve_rounds: int = 0,
    rest_s: float = 0.0,
) -> Steer:
    """Return what goes on with all arms until they are steady or the time is over.

    Args:
        left_s: the time that is left.
        num_arms: of the set.
        min_rounds: the fewest.
        grace_s: the fewest may take so much longer than there is time.
        curve_rounds: after which steady arms have told enough.
        rest_s: of the time that is left, what other sets need; the rounds up to `curve_rounds` may take of it.
    """

    def steer(rounds: Rounds) -> Collection[int]:
        spare_s = 0.0 if len(rounds) < max(min_rounds, curve_rounds) else rest_s
        wanted = left_s() > spare_s or (len(rounds) < min_rounds and left_s() > -grace_s)
        told = len(rounds) >= curve_rounds and are_steady(rounds, range(1, num_arms))
        return range(num_arms) if wanted and not told else ()

    return steer


def are_steady(
    rounds: Rounds,
    arms: Collection[int],
    *,
    steady: float = STEADY,
    clear: float = math.inf,
) -> bool:
    """Whether the blocks of a set say all that this set can say: what is left is the difference between processes.

    Args:
        rounds: of the set so far.
        arms: that it is about, against the first one.
        steady: standard error at which an arm is known well enough.
        clear: so many standard errors away from the first arm an arm is known well enough; three if it is slower.
    """
    if len(rounds) < STEADY_ROUNDS or len(rounds) % 2:  # as many forwards as backwards
        return False
    for at in arms:
        logs = [math.log(times[at] / times[0]) for times in rounds if math.isfinite(times[at])]
        if len(logs) < len(rounds):  # it has been ended
            continue
        error, gain = mad_sd(logs) / math.sqrt(len(logs)), -median(logs)
        known = error <= steady or abs(gain) >= clear * error or gain + 3 * error < 0
        if not known:
            return False
    return True
