"""The line at which a container of the program's gains an entry, read by `ast`."""

from __future__ import annotations

import ast

from hotloop.diagnose.lines.parsed_sources import parsed
from hotloop.model.deep import GrowingContainer

_ADDING = frozenset({"append", "appendleft", "extend", "insert", "setdefault", "update"})


def growing_container_line(holder: GrowingContainer) -> int | None:
    """Return the first line that adds to a container by its name; None: there is none, or its file is gone."""
    tree = parsed(holder.path)
    if tree is None:
        return None
    name = holder.name.removeprefix("self.")
    owners = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name == holder.function
    ]
    for within in (*owners, tree):
        nodes = (node for node in ast.walk(within) if isinstance(node, ast.expr | ast.stmt))
        lines = [node.lineno for node in nodes if _adds(node, name)]
        if lines:
            return min(lines)
    return None


def _adds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Call):
        called = node.func
        return isinstance(called, ast.Attribute) and called.attr in _ADDING and _is(called.value, name)
    if isinstance(node, ast.Assign):
        return any(isinstance(one, ast.Subscript) and _is(one.value, name) for one in node.targets)
    return isinstance(node, ast.AugAssign) and _is(node.target, name)


def _is(value: ast.expr, name: str) -> bool:
    return (isinstance(value, ast.Name) and value.id == name) or (
        isinstance(value, ast.Attribute) and value.attr == name
    )
