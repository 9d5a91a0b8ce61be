"""The line at which a container of the program's gains an entry, or is made, read by `ast`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Protocol

from hotloop.observe.profile.parsed_sources import parsed

_ADDING = frozenset({"append", "appendleft", "extend", "insert", "setdefault", "update"})


class NamedContainer(Protocol):
    """A container, with the name that its owner has for it."""

    @property
    def name(self) -> str:
        """The name: `history`, `self.names`, `logs['loss']`."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def function(self) -> str:
        """The function, or the class, that has it."""


def growing_line(holder: NamedContainer) -> int | None:
    """Return the first line that adds to a container by its name; None: there is none, or its file is gone."""
    return _first(holder, _adds_to_entry if "[" in holder.name else _adds)


def making_line(holder: NamedContainer) -> int | None:
    """Return the first line that gives a container its name; None: there is none, or its file is gone."""
    return _first(holder, _makes)


def _first(holder: NamedContainer, does: Callable[[ast.AST, str], bool]) -> int | None:
    tree = parsed(holder.path)
    if tree is None:
        return None
    name = holder.name.removeprefix("self.").partition("[")[0]
    owners = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name == holder.function
    ]
    for within in (*owners, tree):
        nodes = (node for node in ast.walk(within) if isinstance(node, ast.expr | ast.stmt))
        lines = [node.lineno for node in nodes if does(node, name)]
        if lines:
            return min(lines)
    return None


def _adds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Call):
        called = node.func
        return isinstance(called, ast.Attribute) and called.attr in _ADDING and _is(called.value, name)
    if isinstance(node, ast.Assign):
        return any(isinstance(one, ast.Subscript) and _is(one.value, name) for one in node.targets)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):  # a cache: its decorator makes it grow
        return node.name == name and bool(node.decorator_list)
    return isinstance(node, ast.AugAssign) and _is(node.target, name)


def _adds_to_entry(node: ast.AST, name: str) -> bool:
    """Whether it adds to a list in a dictionary; giving the dictionary that list is another thing."""
    return not isinstance(node, ast.Assign) and _adds(node, name)


def _makes(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Assign):
        return any(_is(one, name) for one in node.targets)
    return isinstance(node, ast.AnnAssign | ast.AugAssign) and _is(node.target, name)


def _is(value: ast.expr, name: str) -> bool:
    if isinstance(value, ast.Subscript):  # a list in a dictionary
        value = value.value
    return (isinstance(value, ast.Name) and value.id == name) or (
        isinstance(value, ast.Attribute) and value.attr == name
    )
