"""Change a program's source at the places that every training loop has."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Tree = ast.Module
Place = tuple[list[ast.stmt], int]
"""A block of statements, and an index in it."""


def after_imports(tree: Tree, code: str) -> None:
    """Insert statements after the module's imports."""
    last = max(
        index for index, node in enumerate(tree.body) if isinstance(node, (ast.Import, ast.ImportFrom))
    )
    tree.body[last + 1 : last + 1] = ast.parse(code).body


def in_method(tree: Tree, code: str, name: str = "__getitem__") -> None:
    """Insert statements at the beginning of each method of that name."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    if not found:
        raise ValueError(f"the program has no {name}")
    for node in found:
        node.body[:0] = ast.parse(code).body


def places(tree: Tree, text: str) -> list[Place]:
    """Return where the statement with this text stands, the last first.

    Raises:
        ValueError: nowhere.
    """
    found = [(body, index) for body, index in _statements(tree) if ast.unparse(body[index]).startswith(text)]
    return _some(found, text)


def calls(tree: Tree, wanted: Callable[[ast.Attribute], bool]) -> list[Place]:
    """Return where a statement is a call of such a method, the last first.

    Raises:
        ValueError: nowhere.
    """
    found = []
    for body, index in _statements(tree):
        statement = body[index]
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and wanted(call.func):
            found.append((body, index))
    return _some(found, "such a call")


def set_constant(tree: Tree, name: str, value: int) -> None:
    """Give a constant of the module another value.

    Raises:
        ValueError: it has none of this name.
    """
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
        ):
            node.value = ast.Constant(value)
            return
    raise ValueError(f"no constant {name}")


def calls_of(tree: Tree, function: str) -> list[ast.Call]:
    """Return all calls of a function, by its last name; `functools.partial(FUNCTION, ...)` counts as one.

    Raises:
        ValueError: it is not called.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.args[0] if _last(node.func) == "partial" and node.args else node.func
            if _last(called) == function:
                found.append(node)
    if not found:
        raise ValueError(f"no call of {function}")
    return found


def set_keyword(tree: Tree, function: str, name: str, value: object) -> None:
    """Set a keyword of all calls of a function; None takes it away."""
    for node in calls_of(tree, function):
        node.keywords = [one for one in node.keywords if one.arg != name]
        if value is not None:
            node.keywords.append(ast.keyword(name, ast.Constant(value)))  # type: ignore[arg-type]


def drop_methods(tree: Tree, name: str) -> None:
    """Take all methods of that name away.

    Raises:
        ValueError: there is none.
    """
    owners = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    before = sum(len(owner.body) for owner in owners)
    for owner in owners:
        owner.body = [
            one for one in owner.body if not (isinstance(one, ast.FunctionDef) and one.name == name)
        ]
    if before == sum(len(owner.body) for owner in owners):
        raise ValueError(f"no method {name}")


def _last(node: ast.expr) -> str:
    return ast.unparse(node).split(".")[-1]


def _statements(tree: Tree) -> Iterator[Place]:
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield from (
                    (block, index) for index in range(len(block)) if isinstance(block[index], ast.stmt)
                )


def _some(found: list[Place], what: str) -> list[Place]:
    if not found:
        raise ValueError(f"the program has no {what}")
    return found[::-1]
