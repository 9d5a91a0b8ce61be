"""Programs, machines and truths to play sessions on: drawn by a seed, so that two searches get the same ones."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import numpy as np
from tests.stats.recorded import recorded
from tests.tune.simulated import Shape, Truth

from hotloop.model.optimization import Candidate, Numerics
from hotloop.stats.parity import MIN_STEPS
from hotloop.tune.design.patterns import exclude

STEPS_S = (0.001, 0.01, 0.1, 1.0, 3.0)
STARTS_S = (2.0, 8.0, 25.0, 60.0)
BUDGETS_S = (120.0, 240.0, 600.0, 1800.0)
CONDITIONS = ("quiet", "busy, passive", "crowded")
KINDS = ("independent", "interactions", "conflicts", "slow starters", "parity failures", "nothing helps")
PRIOR_SHARE, OWN_SD = 0.67, 0.1
"""Of the logarithm of a predicted gain, on average, what was measured, and the deviation around it where little was
predicted (52 predictions in `benchmarks/results/predictions.jsonl`)."""
TURN_S, TURNS = 0.1, 6


class World(msgspec.Struct, frozen=True, kw_only=True):
    """One session to play."""

    seed: int
    budget_s: float
    condition: str
    program: str
    kind: str
    shape: Shape
    truth: Truth
    candidates: tuple[Candidate, ...]
    knobs: frozenset[str]
    conflicts: Mapping[str, frozenset[str]]
    interactions: Mapping[str, frozenset[str]]
    curve_rounds: int

    def log_gain(self, on: frozenset[str]) -> float:
        """Return what names and labels that are on together really gain."""
        alone = sum(math.log(factor) for name, factor in self.truth.factors.items() if name in on)
        return alone + sum(math.log(more) for names, more in self.truth.together.items() if names <= on)

    def groups(self) -> dict[str, str]:
        """Return what a session is counted under."""
        return {
            "budget": f"{self.budget_s / 60:.0f} min",
            "machine": self.condition,
            "truth": self.kind,
            "step": f"{1000 * self.shape.step_s:.0f} ms",
            "first step after": f"{self.shape.startup_s:.0f} s",
        }


def world(seed: int) -> World:
    """Return the world of a seed."""
    rng = np.random.default_rng([46, seed])
    condition = CONDITIONS[seed % 3]
    kind = KINDS[seed // 3 % len(KINDS)]
    programs = recorded(condition)
    shape = _shape(float(rng.choice(STEPS_S)), float(rng.choice(STARTS_S)))
    tried = _candidates(rng)
    knobs = {"half", "layout", "fused", "kept", "threads", "allocator"}
    conflicts = (
        {"kept": frozenset({"workers"}), "workers": frozenset({"kept"})} if kind == "conflicts" else {}
    )
    interactions = {"layout": frozenset({"half"}), "half": frozenset({"layout"})}
    truth = _truth(rng, tried, kind)
    return World(
        seed=seed,
        budget_s=float(rng.choice(BUDGETS_S)),
        condition=condition,
        program=programs[int(rng.integers(len(programs)))],
        kind=kind,
        shape=shape,
        truth=truth,
        candidates=tuple(tried),
        knobs=frozenset(knobs),
        conflicts=conflicts,
        interactions=interactions,
        curve_rounds=max(0, math.ceil((MIN_STEPS - shape.warm_steps) / shape.per_block)),
    )


def by_hand(world: World) -> float:
    """Return the log gain of the best plan there is, found by adding what helps until nothing does."""
    plan: list[Candidate] = []
    able = [one for one in world.candidates if _may_hold(world, one)]
    while True:
        options = [
            [*(step for step in plan if not exclude(step, one, world.conflicts)), one]
            for one in able
            if one not in plan
        ]
        options += [[step for step in plan if step != gone] for gone in plan]
        best = max(options, key=lambda steps: world.log_gain(on(steps)), default=plan)
        if world.log_gain(on(best)) <= world.log_gain(on(plan)) + 1e-9:
            return world.log_gain(on(plan))
        plan = best


def on(plan: list[Candidate] | tuple[Candidate, ...]) -> frozenset[str]:
    """Return the names and labels of a plan."""
    return frozenset(word for step in plan for word in (step.name, step.label))


def _may_hold(world: World, one: Candidate) -> bool:
    words = {one.name, one.label}
    return not words & world.truth.ineffective and not any(names <= words for names in world.truth.departing)


def _shape(step_s: float, startup_s: float) -> Shape:
    """As `tune.design.block_length` shapes the trials of such a step."""
    num = max(1, math.ceil(TURN_S / step_s))
    discard = min(max(1, num // 6), 20) if step_s < 0.15 else 0
    turns = min(TURNS, max(1, round(TURNS * TURN_S / (num * step_s))))
    return Shape(
        step_s=step_s,
        startup_s=startup_s,
        warm_steps=max(6, min(200, math.ceil(1.0 / step_s))),
        block_steps=num,
        discard=discard,
        turns=turns,
        timed_turns=turns,
        hold_steps=max(2, round(0.3 / step_s)),
        again=0.25,
    )


def _candidates(rng: np.random.Generator) -> list[Candidate]:
    """A dozen, as the catalogue proposes them: expected gains, bounds and one-off costs."""
    bound = float(rng.choice([1.02, 1.06, 1.15]))
    return [
        Candidate(name="half", prior=float(rng.choice([1.05, 1.3, 1.6])), numerics=Numerics.TOLERANCE),
        Candidate(name="kept", prior=float(rng.choice([1.02, 1.3]))),
        Candidate(name="workers", params={"n": 2}, prior=float(rng.choice([1.05, 1.3, 1.5]))),
        Candidate(name="compile", prior=float(rng.choice([1.1, 1.25])), one_off_s=45.0),
        Candidate(name="layout", prior=1.09),
        Candidate(name="threads", prior=float(rng.choice([1.0, 1.1])), touches_numbers=False),
        Candidate(name="workers", params={"n": 1}, prior=1.2),
        Candidate(name="allocator", prior=1.1, touches_numbers=False),
        Candidate(name="fused", prior=1 + 0.7 * (bound - 1), max_gain=bound),
        Candidate(name="waiting", prior=float(rng.choice([1.0, 1.15])), touches_numbers=False),
        Candidate(name="pages", prior=1.02, touches_numbers=False),
        Candidate(name="collate", prior=1.02, touches_numbers=False),
    ]


def _truth(rng: np.random.Generator, tried: list[Candidate], kind: str) -> Truth:
    factors = {one.label: _factor(rng, one) for one in tried}
    one_off_s = {"compile": float(rng.uniform(10, 60))}
    together: dict[frozenset[str], float] = {}
    departing: dict[frozenset[str], float] = {}
    if kind == "interactions":
        together[frozenset({"layout", "half"})] = float(rng.choice([0.85, 1.15, 1.3]))
        together[frozenset({"compile", "half"})] = float(rng.choice([0.8, 1.2]))
        together[frozenset({"kept", "fused"})] = float(rng.choice([1.0, 1.1]))
    if kind == "conflicts":
        factors["kept"] = float(rng.uniform(1.1, 2.5))
        factors["workers(n=2)"] = float(rng.uniform(1.1, 1.8))
    if kind == "slow starters":
        one_off_s["compile"] = float(rng.uniform(60, 300))
        one_off_s["kept"] = float(rng.uniform(5, 40))
    if kind == "parity failures":
        departing[frozenset({"half"})] = 0.3
        if rng.random() < 0.3:
            departing[frozenset({"compile"})] = 0.3
    if kind == "nothing helps":
        factors = {
            label: min(1.0, factor) if rng.random() < 0.5 else 1.0 for label, factor in factors.items()
        }
    return Truth(
        factors=factors,
        together=together,
        departing=departing,
        one_off_s=one_off_s,
        ineffective=frozenset({"pages"} if rng.random() < 0.3 else ()),
        from_start=frozenset({"kept"} if rng.random() < 0.2 else ()),
        switched={"kept": float(rng.uniform(0.9, 1.05))},
    )


def _factor(rng: np.random.Generator, one: Candidate) -> float:
    """A true factor around what is expected; a third of the candidates does nothing at all."""
    if rng.random() < 1 / 3:
        return 1.0
    usual = PRIOR_SHARE * math.log(one.expected)
    log_gain = rng.normal(usual, math.hypot(OWN_SD, usual))
    if one.max_gain is not None:
        log_gain = min(log_gain, math.log(one.max_gain))
        log_gain = max(log_gain, -math.log(one.max_gain))
    return float(math.exp(max(-1.2, min(1.2, log_gain))))
