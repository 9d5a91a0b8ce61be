"""The whole way from an observation to a proven plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence


from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics, Refusal
from hotloop.model.tuning import Baseline, Contention, Fit, Measured, Plan, TuneResult
from hotloop.stats.floor import aa_floor, pair_spread
from hotloop.stats.verdict import Verdict
from hotloop.tune.clock import Budget
from hotloop.tune.confirm import MIN_SETS, SET_ROUNDS, Confirmation, Confirmer, plan_steps, total_contention
from hotloop.tune.executor import Executor, SetFailed, SetOrder, SetRecord
from hotloop.tune.journal import Journal, once
from hotloop.tune.references import References
from hotloop.tune.search import Ground, Search

FLOOR_ROUNDS = 6
LONG_BUDGET_S = 480.0
"""From here on two A/A pairs are run: one says nothing of how much pairs differ."""


class Tuner:
    """Tunes one program.

    Args:
        observation: of the program as it is.
        executor: runs the trials.
        journal: keeps what is finished.
        budget: the time there is.
        progress: told of what goes on.
        max_rounds: rounds until the program ends by itself; None: it does not.
    """

    def __init__(
        self,
        observation: Observation,
        executor: Executor,
        journal: Journal,
        budget: Budget,
        progress: Callable[[str], None],
        max_rounds: int | None = None,
    ) -> None:
        self._observation = observation
        self._executor = executor
        self._journal = journal
        self._budget = budget
        self._progress = progress
        self._max_rounds = max_rounds
        self._search: Search | None = None
        self._records: list[SetRecord] = []
        self._round_s = 0.0

    def run(self, candidates: Sequence[Candidate], refused: Sequence[Refusal]) -> TuneResult:
        """Return what was found, and the empty plan where nothing helps.

        After Ctrl-C the best plan proven until then is returned, marked as interrupted.
        """
        interrupted = False
        confirmation: Confirmation | None = None
        dropped: list[Refusal] = []
        ground: Ground | None = None
        try:
            ground = self._measure_ground(candidates)
            self._search = Search(self._executor, self._journal, self._budget, ground, self._progress)
            self._search.run(candidates, self._reserve_s)
            if self._search.plan:
                confirmer = Confirmer(self._executor, self._journal, self._budget, ground, self._progress)
                confirmation, dropped = confirmer.run(self._search.plan)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._executor.close()
        return self._result(ground, confirmation, [*refused, *dropped], interrupted)

    def _measure_ground(self, candidates: Sequence[Candidate]) -> Ground:
        """Run the original against itself: this machine's floor, and the reference losses."""
        pairs = 2 if self._budget.seconds >= LONG_BUDGET_S else 1
        for number in range(pairs):
            self._progress(f"the program against itself, pair {number + 1} of {pairs}")
            self._records.append(self._aa_pair(number))
        log_ratios = [record.log_ratios(0, 1) for record in self._records if len(record.rounds) >= 3]
        first = self._records[0].arms
        return Ground(
            floor=aa_floor(log_ratios),
            spread=pair_spread(log_ratios),
            references=References(
                original=first[0].losses, repeat=first[1].losses, perturbed=self._perturbed(first[0].losses, candidates)
            ),
            max_rounds=self._max_rounds,
        )

    def _aa_pair(self, number: int) -> SetRecord:
        rounds = min(FLOOR_ROUNDS, self._max_rounds or FLOOR_ROUNDS)
        order = SetOrder(plans=((), ()), max_rounds=rounds, fresh=True)
        began = self._budget.now()
        record = once(
            self._journal, f"floor|{number}", SetRecord | SetFailed, lambda: self._executor.run(order, lambda _: False)
        )
        if isinstance(record, SetFailed):
            raise HotloopError(
                f"the program could not be run in trials: {record.failure.message}\n{record.failure.log_end}",
                "it must be able to run twice at once, and take enough steps; see the end of its output above",
                ExitCode.PROGRAM_FAILED,
            )
        self._round_s = max(self._round_s, (self._budget.now() - began) / 2)
        return record

    def _perturbed(self, losses: Sequence[float], candidates: Sequence[Candidate]) -> tuple[float, ...]:
        if not losses or all(candidate.numerics is Numerics.EXACT for candidate in candidates):
            return ()
        self._progress("the program with rounding noise, for the parity floor")
        return once(
            self._journal, "perturbed", tuple[float, ...], lambda: self._executor.perturbed(len(losses))
        )

    def _reserve_s(self, num_steps: int) -> float:
        """Seconds that confirming takes: fresh sets of the original and every prefix of the plan.

        An arm of the A/A pair took `_round_s` for start-up and `FLOOR_ROUNDS` blocks.
        """
        share = 0.5 + 0.5 * SET_ROUNDS / FLOOR_ROUNDS
        return MIN_SETS * (num_steps + 1) * self._round_s * share

    def _result(
        self,
        ground: Ground | None,
        confirmation: Confirmation | None,
        refused: Sequence[Refusal],
        interrupted: bool,
    ) -> TuneResult:
        observation, search = self._observation, self._search
        assert observation.step is not None
        assert observation.anchor is not None
        step = observation.step
        proven = confirmation is not None and confirmation.decision.verdict is Verdict.FASTER and confirmation.plan
        trials = tuple(search.trials) if search else ()
        reports = [record.contention for record in (*self._records, *(confirmation.records if confirmation else ()))]
        reports += [trial.outcome.contention for trial in trials if isinstance(trial.outcome, Measured)]
        return TuneResult(
            command=observation.command,
            baseline=Baseline(
                step_s=step.median_s,
                low_s=step.low_s,
                high_s=step.high_s,
                samples_per_s=step.samples_per_s,
                peak_bytes=observation.memory.peak_bytes,
                anchor=observation.anchor,
            ),
            floor=ground.floor if ground else float("nan"),
            plan=self._plan(confirmation if proven else None),
            refused=(*refused, *_still_refused(search, confirmation, interrupted)),
            trials=trials,
            peak_bytes=_peaks(confirmation if proven else None),
            contention=total_contention(reports) if reports else Contention(num_blocks=0, num_void=0),
            confirmation=_how(confirmation),
            wall_s=self._budget.spent(),
            interrupted=interrupted,
        )

    def _plan(self, confirmation: Confirmation | None) -> Plan:
        program = self._observation.program
        return Plan(
            steps=plan_steps(confirmation) if confirmation else (),
            speedup=confirmation.decision.ratio if confirmation else None,
            parity=confirmation.parity if confirmation else None,
            fit=Fit(
                machine=self._observation.machine,
                torch_version=program.torch_version,
                script=program.script,
                script_sha256=program.script_sha256,
                command=self._observation.command,
            ),
        )


def _still_refused(
    search: Search | None, confirmation: Confirmation | None, interrupted: bool
) -> Sequence[Refusal]:
    if search is None:
        return ()
    refused = list(search.refused.values())
    if confirmation is None and interrupted:
        refused += [Refusal(step.label, "promising, but interrupted before it was confirmed") for step in search.plan]
    return refused


def _peaks(confirmation: Confirmation | None) -> tuple[int | None, int | None]:
    if confirmation is None or not confirmation.records:
        return (None, None)
    arms = confirmation.records[-1].arms
    return (arms[0].peak_bytes, arms[-1].peak_bytes)


def _how(confirmation: Confirmation | None) -> str:
    if confirmation is None:
        return "nothing was left to confirm"
    sets = len(confirmation.records)
    return (
        f"{sets} sets of fresh processes, each {SET_ROUNDS} blocks an arm in ABBA order; "
        "95% interval over sets and blocks, valid at every look"
    )


