"""What the experiment is designed from: time, step and catalogue of one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from hotloop.model.goal import Aim
from hotloop.model.optimization import Candidate
from hotloop.tune.design.costs import Costs
from hotloop.tune.executor import PlanSteps


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """What the experiment is designed from.

    Attributes:
        costs: of one arm's start and of one arm's block, in seconds, and the cores that starts share.
        hold_s: of one hold of a pattern.
        max_rounds: rounds until the program ends by itself; None: it does not.
        busy: whether others use the machine, when the experiment begins.
        observed_s: of a step, as the program was observed; None: not known.
        observed_busy: whether others used the machine then.
        usual_s: of a step then, with all that lies between steps; None: not known.
        curve_rounds: rounds after which an arm's losses can be compared.
        typical: whether a hold is summed up by its median step.
        conflicts: names that cannot be on together.
        interactions: names that may help or hinder one another.
        stands_in_for: names that each optimization is tried in place of, where they do not learn the same.
        heed_neighbours: names of those whose gain is what other processes take.
        aim: what a plan is for.
        switchable: whether a candidate can be switched in a running program.
        alike: whether a candidate shortens every step alike.
        buffered: whether batches wait in a queue between loader workers and the step with this on.
    """

    costs: Costs
    hold_s: float
    switchable: Callable[[Candidate], bool]
    alike: Callable[[Candidate], bool] = lambda _: False
    buffered: Callable[[PlanSteps], bool] = lambda _: False
    max_rounds: int | None = None
    curve_rounds: int = 0
    busy: bool = False
    observed_s: float | None = None
    observed_busy: bool = False
    usual_s: float | None = None
    typical: bool = True
    conflicts: Mapping[str, frozenset[str]] = {}
    interactions: Mapping[str, frozenset[str]] = {}
    stands_in_for: Mapping[str, frozenset[str]] = {}
    heed_neighbours: frozenset[str] = frozenset()
    aim: Aim = Aim()
