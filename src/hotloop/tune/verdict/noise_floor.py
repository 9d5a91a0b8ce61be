"""The original against itself: this machine's floor, how much processes differ, and the reference losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.optimization import Candidate, Numerics
from hotloop.stats.floor import aa_floor, pair_spread
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.tune.executor import Executor, SetFailed, SetOrder, SetRecord
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.verdict.baseline import NoiseBaseline
from hotloop.tune.verdict.reference_losses import ReferenceLosses

FLOOR_ROUNDS = 6
LONG_BUDGET_S = 480.0
"""From here on two A/A pairs are run: one says nothing of how much pairs differ."""


class EndedEarly(Exception):  # noqa: N818 - an observation, not an error
    """The program came to its own end before an A/A pair was measured; nobody had seen how long it is.

    Args:
        num_steps: that it takes.
    """

    def __init__(self, num_steps: int) -> None:
        super().__init__(num_steps)
        self.num_steps = num_steps


class NoiseFloor:
    """Measures what every trial is judged by.

    Args:
        executor: runs the pairs.
        ledger: keeps them, and the time there is.
        progress: told of what is measured.
        max_rounds: rounds until the program ends by itself; None: it does not.
    """

    def __init__(
        self, executor: Executor, ledger: Ledger, progress: Callable[[str], None], max_rounds: int | None
    ) -> None:
        self._executor = executor
        self._ledger = ledger
        self._progress = progress
        self._max_rounds = max_rounds
        self.records: list[SetRecord] = []
        self.start_s = 0.0
        """Seconds that each arm of an A/A pair took to start up; they start side by side, so half of the pair's."""
        self.run_s = 0.0
        """Seconds of one arm's `FLOOR_ROUNDS` blocks."""

    def measure(self, candidates: Sequence[Candidate]) -> NoiseBaseline:
        """Return the ground for these candidates.

        Raises:
            HotloopError: the program cannot be run beside itself.
            EndedEarly: it has fewer steps than the pair wanted.
        """
        num_pairs = 2 if self._ledger.budget.seconds >= LONG_BUDGET_S else 1
        for number in range(num_pairs):
            self._progress(f"the program against itself, pair {number + 1} of {num_pairs}")
            self._pair(number)
        pairs = [record.log_ratios(0, 1) for record in self.records if len(record.rounds) >= MIN_BLOCKS]
        first, second = self.records[0].arms
        return NoiseBaseline(
            floor=aa_floor(pairs),
            spread=pair_spread(pairs),
            references=ReferenceLosses(
                original=first.losses,
                repeat=second.losses,
                perturbed=self._perturbed(first.losses, candidates),
            ),
            max_rounds=self._max_rounds,
        )

    def _pair(self, number: int) -> None:
        key = f"floor|{number}"
        record = self._ledger.once(key, SetRecord, self._run)
        self.records.append(record)
        arm_s = self._ledger.seconds(key) / 2
        start_s = min(arm_s, max(arm.first_steps_s or 0.0 for arm in record.arms) / 2)
        self.start_s = max(self.start_s, start_s)
        self.run_s = max(self.run_s, arm_s - start_s)

    def _run(self) -> SetRecord:
        rounds = min(FLOOR_ROUNDS, self._max_rounds or FLOOR_ROUNDS)
        record = self._executor.run(SetOrder(plans=((), ()), max_rounds=rounds, fresh=True), lambda _: False)
        if isinstance(record, SetFailed):
            if record.failure.num_steps is not None and self._max_rounds is None:
                raise EndedEarly(record.failure.num_steps)
            raise HotloopError(
                f"the program could not be run in trials: {record.failure.message}\n{record.failure.log_end}",
                "it must be able to run twice at once, and take enough steps; its output ends above",
                ExitCode.PROGRAM_FAILED,
            )
        return record

    def _perturbed(self, losses: Sequence[float], candidates: Sequence[Candidate]) -> tuple[float, ...]:
        """Only reduced precision is held to it."""
        if not losses or all(candidate.numerics is Numerics.EXACT for candidate in candidates):
            return ()
        self._progress("the program with rounding noise, for the parity floor")
        return self._ledger.once(
            "perturbed", tuple[float, ...], lambda: self._executor.perturbed(len(losses))
        )
