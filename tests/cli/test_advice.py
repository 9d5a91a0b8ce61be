"""Advice can be followed: an optimization is named only where the catalogue has it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import hotloop
from hotloop.optimize.registry import all_optimizations

HOME = Path(hotloop.__file__).parent
ROOMS = ("lint", "diagnose", "trace")


def _named(tree: ast.AST) -> Iterator[str]:
    """Every name that is given as `optimization=`, on both sides of a choice."""
    for call in ast.walk(tree):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg == "optimization":
                yield from (
                    one.value
                    for one in ast.walk(keyword.value)
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                )


@pytest.mark.parametrize("room", ROOMS)
def test_every_optimization_that_a_rule_names_exists(room: str) -> None:
    known = {one.name for one in all_optimizations()}
    named = {
        (path.name, name)
        for path in (HOME / room).rglob("*.py")
        for name in _named(ast.parse(path.read_text()))
    }
    assert named
    assert {(file, name) for file, name in named if name not in known} == set()
