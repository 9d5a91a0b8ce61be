"""Loops in an observed program's source that something faster may take the place of."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hotloop.model.observation import Observation
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.program.bounds import MIN_SHARE, expected
from hotloop.optimize.program.sampled_lines import Lines, sampled_share
from hotloop.optimize.program.source_calls import program_files

Find = Callable[[ast.Module], tuple[Sequence[Any], Mapping[int, str]]]
"""Returns loops (each with its `node`), and by line why others are left."""
SHOWN = 4
"""Reasons that a refusal names."""
WITH_BACKWARD = 2.0
"""What a loop costs beside its own time: the backward goes through as many operations."""
UNSAMPLED = 0.1
"""Share of the step that a loop is taken to have where the host was not sampled."""


def faster_loops(observation: Observation, find: Find, over: str, otherwise: str, factor: float) -> float:
    """Return the speed ratio of the step that is expected when its loops get `factor` times as fast.

    Args:
        observation: of the program.
        find: the loops of a file.
        over: what they go over, for a refusal: `loops over time`.
        otherwise: the refusal where no file has a loop of the kind.
        factor: of the loops.

    Raises:
        DoesNotApply: there is none, or they take too little of the step.
    """
    found, left = _loops(observation, find)
    if not found:
        raise DoesNotApply("; ".join(left[:SHOWN]) or otherwise)
    share = sampled_share(observation, found)
    if share is not None and share < MIN_SHARE:
        raise DoesNotApply(f"its {over} take {share:.1%} of the step: there is nothing to gain")
    return expected(UNSAMPLED if share is None else min(share * WITH_BACKWARD, 0.9), factor)


def _loops(observation: Observation, find: Find) -> tuple[list[Lines], list[str]]:
    """Return path, first and last line of the loops, and why others are left."""
    found: list[Lines] = []
    left: dict[str, None] = {}
    for name, text in program_files(observation):
        path = os.path.abspath(name)
        try:
            loops, reasons = find(ast.parse(text))
        except SyntaxError:
            continue
        found += [(path, each.node.lineno, each.node.end_lineno or each.node.lineno) for each in loops]
        left |= {f"{os.path.basename(path)}:{line}: {reason}": None for line, reason in reasons.items()}
    return found, list(left)
