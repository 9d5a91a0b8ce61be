"""Whether a program differentiates a gradient: kernels whose backward has no backward of its own are not for it."""

from __future__ import annotations

import ast
import os

from hotloop.model.observation import Observation
from hotloop.optimize.program.source_calls import program_files

_ASKS = "create_graph"


def who_differentiates_twice(observation: Observation) -> str:
    """Return who was seen to, or else the line that asks for it; empty: nobody does.

    A penalty on gradients may come only every so many steps, or after a warm-up: the run that was observed need not
    have met it.
    """
    if observation.program.double_backward:
        return "the program"
    return next(
        (
            f"{os.path.basename(path)}:{line}"
            for path, text in program_files(observation)
            for line in _asking_lines(text)
        ),
        "",
    )


def _asking_lines(text: str) -> list[int]:
    """Return the lines of calls that ask for a gradient's graph, or may."""
    if _ASKS not in text:
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, RecursionError, ValueError):
        return []
    words = [each for each in ast.walk(tree) if isinstance(each, ast.keyword) and each.arg == _ASKS]
    return [each.value.lineno for each in words if not _is_false(each.value)]


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value
