"""Which knobs are on in which hold: a Plackett-Burman design, folded over and shuffled.

In n holds (n a multiple of 4) every one of up to n - 1 knobs is on in half of them, and every two of them are on
together in a quarter: each hold informs every knob (Plackett & Burman 1946, Biometrika 33:305). The folded half, in
which all that was on is off, keeps pairs that interact out of the main effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hotloop.model.optimization import Candidate

_PRIMES = (3, 7, 11, 19, 23, 31, 43, 47)
"""With prime p, Paley's construction gives a Hadamard matrix of p + 1."""


def plackett_burman(num_knobs: int) -> npt.NDArray[np.bool_]:
    """Return the smallest design for so many knobs: a row for each hold, a column for each knob."""
    prime = next((prime for prime in _PRIMES if prime >= num_knobs), None)
    if prime is None:
        raise ValueError(f"no design for {num_knobs} knobs; at most {_PRIMES[-1]}")
    squares = {value * value % prime for value in range(1, prime)}
    core = np.array([[(row - column) % prime in squares for column in range(prime)] for row in range(prime)])
    return np.vstack((core | np.eye(prime, dtype=bool), np.zeros(prime, dtype=bool)))[:, :num_knobs]


def schedule(
    knobs: Sequence[Candidate], conflicts: Mapping[str, frozenset[str]], num_holds: int, seed: int
) -> list[list[str]]:
    """Return the labels of what is on in each hold, cycle after cycle of the design with columns and rows shuffled.

    Args:
        knobs: to be switched.
        conflicts: what cannot be on together; of such knobs, and of variants of one, a random one is on.
        num_holds: at least so many.
        seed: of the shuffling.
    """
    rng = np.random.default_rng(seed)
    if not knobs:
        return []
    half = plackett_burman(len(knobs))
    holds: list[list[str]] = []
    while len(holds) < num_holds:
        design = half[:, rng.permutation(len(knobs))]
        for row in rng.permutation(np.vstack((design, ~design))):
            wanted = [knob for knob, on in zip(knobs, row, strict=True) if on]
            holds.append([knob.label for knob in _allowed(wanted, conflicts, rng)])
    return holds


def exclude(one: Candidate, other: Candidate, conflicts: Mapping[str, frozenset[str]]) -> bool:
    """Whether two candidates cannot be on together."""
    return one.name == other.name or other.name in conflicts.get(one.name, frozenset())


def _allowed(
    wanted: Sequence[Candidate], conflicts: Mapping[str, frozenset[str]], rng: np.random.Generator
) -> list[Candidate]:
    kept: list[Candidate] = []
    for index in rng.permutation(len(wanted)):
        if not any(exclude(wanted[index], other, conflicts) for other in kept):
            kept.append(wanted[index])
    return kept


def with_candidate(
    plan: Sequence[Candidate], candidate: Candidate, conflicts: Mapping[str, frozenset[str]]
) -> tuple[Candidate, ...]:
    """Return the plan with a candidate on, in place of its own name and of what it cannot be beside."""
    return (*(step for step in plan if not exclude(step, candidate, conflicts)), candidate)
