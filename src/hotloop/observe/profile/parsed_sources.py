"""The program's files as `ast` reads them, each once."""

from __future__ import annotations

import ast
from functools import lru_cache

from hotloop.model.regular_file import regular_bytes

MAX_BYTES = 4 << 20
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def parsed(path: str) -> ast.Module | None:
    """Return a file's tree; None: it is gone, or is no Python.

    A session names it, and may have come from elsewhere.
    """
    try:
        text = regular_bytes(path, MAX_BYTES)
    except OSError:
        return None
    return _tree(text)


@lru_cache(maxsize=64)
def _tree(text: bytes) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def statement_at(tree: ast.Module, line: int) -> ast.stmt | None:
    """Return the smallest statement that a line lies in: of a loop's head the loop, of a line in its body that line.

    None: the line is in none but a function's or a class's head.
    """
    holding = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not isinstance(node, _DEFINITIONS) and line in lines_of(node)
    ]
    return min(holding, key=lambda node: len(lines_of(node)), default=None)


def lines_of(node: ast.stmt | ast.expr) -> range:
    """Return the numbers of a node's lines."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
