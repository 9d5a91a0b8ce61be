"""Whether the function around a line calls something, read by `ast`."""

from __future__ import annotations

import ast

from hotloop.observe.profile.parsed_sources import parsed

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def calls_softmax(path: str, line: int) -> bool:
    """Whether the innermost function around a line calls a softmax, of torch or one of its modules."""
    tree = parsed(path)
    around = [
        node
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, _FUNCTIONS) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not around:
        return False
    innermost = max(around, key=lambda node: node.lineno)
    return any(_is_softmax(node.func) for node in ast.walk(innermost) if isinstance(node, ast.Call))


def _is_softmax(called: ast.expr) -> bool:
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return "softmax" in name.lower() and "log" not in name.lower()
