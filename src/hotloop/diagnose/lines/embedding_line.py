"""The line that makes an embedding, from a line that looks rows up in it."""

from __future__ import annotations

import ast

from hotloop.observe.profile.parsed_sources import parsed, statement_at

_CLASSES = ("Embedding", "EmbeddingBag")


def embedding_line(path: str, line: int) -> int | None:
    """Return the line of the constructor that a line's attributes were assigned from; None: it was not found."""
    tree = parsed(path)
    statement = statement_at(tree, line) if tree is not None else None
    if tree is None or statement is None:
        return None
    made = dict(_assigned(tree))
    called = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    names = [_name(one) for one in called]
    found = next((made[name] for name in names if name in made), None)
    lines = set(made.values())
    return found if found is not None else lines.pop() if len(lines) == 1 else None


def _assigned(tree: ast.Module) -> list[tuple[str, int]]:
    return [
        (name, node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _makes_embedding(node.value)
        for target in node.targets
        if (name := _name(target)) is not None
    ]


def _makes_embedding(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) and _name(node.func) in _CLASSES for node in ast.walk(value))


def _name(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
