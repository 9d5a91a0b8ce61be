"""The functions of a file, by their qualified names."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def functions(tree: ast.AST, prefix: str) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield the qualified name and the body of each function of a file; those inside others are by themselves."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{node.name}", node.body
            yield from functions(node, f"{prefix}{node.name}.<locals>.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)
