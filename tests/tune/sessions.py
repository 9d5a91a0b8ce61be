"""Whole tune sessions on the simulated machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from hotloop.model.goal import Aim
from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.tuning import TuneResult
from hotloop.tune.confirm.standing import ConfirmedSets
from hotloop.tune.design.costs import Costs
from hotloop.tune.design.experiment import Design
from hotloop.tune.session.budget import Budget
from hotloop.tune.session.ledger import Journal, Ledger
from hotloop.tune.tuner import Tuner

from ..stats.simulated import Noise, random_noise
from .simulated import QUIET, USUAL, Clock, Disturbance, Shape, SimulatedExecutor, Truth, observation

DEFAULT_BUDGET_S = 600.0


class Memory:
    """A journal that lives as long as the test; values go through the encoding of the real one."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}

    def put(self, key: str, value: object) -> None:
        self.entries[key] = msgspec.msgpack.encode(value)

    def get(self, key: str, kind: Any) -> Any:
        body = self.entries.get(key)
        return None if body is None else msgspec.msgpack.decode(body, type=kind)

    def finished(self) -> list[str]:
        """The keys of finished work."""
        return [key for key in self.entries if not key.startswith("seconds|")]


class Simulation:
    """One session: what it was given, and what it did."""

    def __init__(
        self,
        truth: Truth,
        noise: Noise = QUIET,
        *,
        seed: int = 0,
        budget_s: float = DEFAULT_BUDGET_S,
        journal: Journal | None = None,
        turn: Callable[[], int] | None = None,
        before: Callable[[], None] = lambda: None,
        max_rounds: int | None = None,
        curve_rounds: int = 0,
        conflicts: Mapping[str, frozenset[str]] | None = None,
        interactions: Mapping[str, frozenset[str]] | None = None,
        stands_in_for: Mapping[str, frozenset[str]] | None = None,
        heed_neighbours: frozenset[str] = frozenset(),
        switchable: Callable[[Candidate], bool] = lambda _: False,
        busy: bool = False,
        observed_s: float | None = None,
        observed_busy: bool = False,
        start_s: float | None = None,
        free: bool = False,
        disturbance: Disturbance | None = None,
        shape: Shape = USUAL,
        may_be_late: bool = False,
        told: Callable[[str], None] | None = None,
        aim: Aim = Aim(),  # noqa: B008 - frozen
    ) -> None:
        self.clock = Clock()
        budget = Budget(budget_s, self.clock)
        self.executor = SimulatedExecutor(
            truth,
            noise,
            self.clock,
            seed,
            turn=turn,
            before=before,
            disturbance=disturbance,
            shape=shape,
            left_s=budget.left if may_be_late else None,
        )
        self.said: list[str] = []
        self._told: Callable[[str], None] = self.said.append
        self._ledger = Ledger(journal or Memory(), budget, free=free)
        observed_s = observed_s if observed_s is not None else shape.step_s
        start_s = start_s if start_s is not None else shape.startup_s
        design = Design(
            costs=Costs(start_s + shape.warm_steps * shape.step_s, shape.round_s, num_cores=1),
            hold_s=shape.hold_s,
            switchable=switchable,
            max_rounds=max_rounds,
            curve_rounds=curve_rounds,
            conflicts=conflicts or {},
            interactions=interactions or {},
            stands_in_for=stands_in_for or {},
            heed_neighbours=heed_neighbours,
            busy=busy,
            observed_s=observed_s,
            observed_busy=observed_busy,
            usual_s=observed_s,
            aim=aim,
        )
        seen = observation(step_s=shape.step_s)
        self._tuner = Tuner(seen, self.executor, self._ledger, design, self._tell, told)

    @property
    def confirmed(self) -> ConfirmedSets:
        """The sets of the session's proofs."""
        return self._tuner.confirmed

    def listen(self, told: Callable[[str], None]) -> None:
        """Give what is said to somebody else."""
        self._told = told

    def _tell(self, text: str) -> None:
        self._told(text)

    def run(self, tried: Sequence[Candidate], refused: Sequence[Refusal] = ()) -> TuneResult:
        """Tune."""
        return self._tuner.run(tried, refused)


def noisy(seed: int) -> Noise:
    """One of the machines that verdicts have to stand."""
    return random_noise(np.random.default_rng(seed))


def names(result: TuneResult) -> list[str]:
    """The plan's steps."""
    return [step.name for step in result.plan.steps]


def reasons(result: TuneResult) -> dict[str, str]:
    """Why each refused candidate was refused."""
    return {refusal.name: refusal.reason for refusal in result.refused}


def interrupts_when(words: str) -> Callable[[str], None]:
    """Ctrl-C when something is said that starts with these words."""

    def listen(text: str) -> None:
        if text.startswith(words):
            raise KeyboardInterrupt

    return listen
