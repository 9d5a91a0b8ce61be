"""Data sets that the program changes from outside, read from its source: workers that live on would not hear of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

_OWN = "dataset"
"""A loader's attribute: `loader.dataset.p = 0.5`."""
Scope: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class _Statement:
    """One that may change a data set.

    Attributes:
        node: of the tree.
        scope: the function that it stands in, or the module.
        until: line on which its outermost loop within that ends, or it itself.
    """

    node: ast.stmt
    scope: Scope
    until: int


def changed_from_outside(files: Iterable[tuple[str, str]]) -> str:
    """Return the first place (`train.py:12`) at which a loader's data set may be changed after the loader was made.

    That is an assignment to what it holds, or a call of one of its methods for its effect alone; what the class does to
    itself it does in a worker as well. Names are compared, not objects: in doubt it is a change.

    Args:
        files: path and text of each of the program's.

    Returns:
        Empty: there is none.
    """
    trees = [(path, tree) for path, text in files if (tree := _parsed(text)) is not None]
    names = {_OWN} | {name for _, tree in trees for call in _loader_calls(tree) for name in _dataset_of(call)}
    for path, tree in trees:
        for statement in _statements(tree, tree, None):
            if _changes(statement.node, names) and not _comes_before_its_loader(statement):
                return f"{path}:{statement.node.lineno}"
    return ""


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _loader_calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func).endswith("DataLoader"):
            yield node


def _dataset_of(call: ast.Call) -> Iterator[str]:
    """Return what a loader's data set is called: the last name of `self.train_set`."""
    given = [word.value for word in call.keywords if word.arg == _OWN] or call.args[:1]
    for value in given:
        name = _name(value.target if isinstance(value, ast.NamedExpr) else value)
        if name:
            yield name


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _statements(node: ast.AST, scope: Scope, until: int | None) -> Iterator[_Statement]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            yield from _statements(child, scope, until)
            continue
        own = (child.end_lineno or child.lineno) if until is None else until
        yield _Statement(child, scope, own)
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _statements(child, child, None)
        elif isinstance(child, (ast.For, ast.AsyncFor, ast.While)):
            yield from _statements(child, scope, own)
        else:
            yield from _statements(child, scope, until)


def _changes(node: ast.stmt, names: set[str]) -> bool:
    if isinstance(node, ast.Assign):
        return any(_within(target, names) for target in node.targets)
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return _within(node.target, names)
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    call = node.value
    if _name(call.func) == "setattr" and call.args:
        return _within(call.args[0], names) or _name(call.args[0]) in names
    return _within(call.func, names)


def _within(target: ast.expr, names: set[str]) -> bool:
    """Whether an attribute or an item is one of a data set, or of something that it holds."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_within(each, names) for each in target.elts)
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
        if _name(target) in names:
            return True
    return False


def _comes_before_its_loader(statement: _Statement) -> bool:
    """Whether it is done with when a loader is made below it, in the same function."""
    return any(call.lineno > statement.until for call in _loader_calls(statement.scope))
