"""Change a program's source at the places that every training loop has."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Tree = ast.Module


def after_torch(tree: Tree, code: str) -> None:
    """Insert statements after the module's imports."""
    last = max(
        index for index, node in enumerate(tree.body) if isinstance(node, (ast.Import, ast.ImportFrom))
    )
    tree.body[last + 1 : last + 1] = _statements(code)


def in_getitem(tree: Tree, code: str) -> None:
    """Insert statements at the beginning of each `__getitem__`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "__getitem__":
            node.body[:0] = _statements(code)


def after_step(tree: Tree, code: str) -> None:
    """Insert statements after the optimizer's step."""
    for body, index in _calls(tree, _is_optimizer_step):
        body[index + 1 : index + 1] = _statements(code)


def before_backward(tree: Tree, code: str) -> None:
    """Insert statements before the backward pass."""
    for body, index in _calls(tree, lambda call: call.attr == "backward"):
        body[index:index] = _statements(code)


def set_constant(tree: Tree, name: str, value: int) -> None:
    """Give a constant of the module another value."""
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
        ):
            node.value = ast.Constant(value)
            return
    raise ValueError(f"no constant {name}")


def set_keyword(tree: Tree, function: str, name: str, value: object) -> None:
    """Set a keyword of all calls of a function; None takes it away."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == function:
            node.keywords = [one for one in node.keywords if one.arg != name]
            if value is not None:
                node.keywords.append(ast.keyword(name, ast.Constant(value)))  # type: ignore[arg-type]


def _statements(code: str) -> list[ast.stmt]:
    return ast.parse(code).body


def _is_optimizer_step(call: ast.Attribute) -> bool:
    return call.attr == "step" and "sched" not in ast.unparse(call.value)


def _calls(tree: Tree, wanted: Callable[[ast.Attribute], bool]) -> Iterator[tuple[list[ast.stmt], int]]:
    found = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for index, statement in enumerate(body if isinstance(body, list) else []):
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and wanted(call.func):
                assert body is not None
                found.append((body, index))
    if not found:
        raise ValueError("the program has no such call")
    yield from reversed(found)
