"""Find activation functions that are written out in a source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from hotloop.patterns.activations.formula import Formula, formula
from hotloop.patterns.functions import functions
from hotloop.patterns.torch_modules import parsed

WORDS = ("tanh", "erf", "sigmoid", "exp(")
"""One of them stands in every such formula."""


@dataclass(frozen=True)
class WrittenOut:
    """One place where an activation function is written out.

    Attributes:
        function: qualified name of the function it stands in.
        line: where it begins.
        expression: what becomes the call.
        formula: what it computes.
    """

    function: str
    line: int
    expression: ast.expr
    formula: Formula

    @property
    def arguments(self) -> str:
        """Of the call: `x, approximate="tanh"`."""
        return f"{self.formula.given}{self.formula.function.keywords}"


def written_out(source: str) -> list[WrittenOut]:
    """Return what is found in a source, in its order; nothing where it is not Python."""
    if not any(word in source for word in WORDS):
        return []
    try:
        tree = parsed(source)
    except (SyntaxError, RecursionError, ValueError):
        return []
    return [found for name, body in functions(tree, "") for node in body for found in _in(name, node)]


def _in(name: str, node: ast.AST) -> Iterator[WrittenOut]:
    """The largest expressions: what is inside one is part of it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return
    if isinstance(node, (ast.BinOp, ast.Call)):
        found = formula(node)
        if found is not None:
            yield WrittenOut(name, node.lineno, node, found)
            return
    for child in ast.iter_child_nodes(node):
        yield from _in(name, child)
