"""By what names a file knows torch's modules: `F.softmax(x)` calls a function, `x.softmax()` a method."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_MARK = "_is_torch_module"


def parsed(source: str) -> ast.Module:
    """Return the tree of a source, with the names that its imports give torch's modules marked.

    Raises:
        SyntaxError: it is not Python.
    """
    tree = ast.parse(source)
    names = set(_imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            setattr(node, _MARK, True)
    return tree


def is_torch_module(node: ast.expr) -> bool:
    """Whether an expression of such a tree begins with one of these names: `TF`, `torch.nn.functional`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return hasattr(node, _MARK)


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (
                alias.asname or "torch" for alias in node.names if alias.name.partition(".")[0] == "torch"
            )
        elif isinstance(node, ast.ImportFrom) and node.module in {"torch", "torch.nn"}:
            yield from (
                alias.asname or alias.name for alias in node.names if alias.name in {"nn", "functional"}
            )
