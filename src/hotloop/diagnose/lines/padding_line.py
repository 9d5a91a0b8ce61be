"""Where a batch gets its width: a keyword of a tokenizer, or what a collate function allocates."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotloop.observe.profile.parsed_sources import lines_of, parsed

_ALLOCATES = frozenset(
    {"full", "zeros", "ones", "empty", "new_full", "new_zeros", "new_ones", "new_empty", "pad"}
)


def padding_line(*files: str | None) -> tuple[str, int] | None:
    """Return where a tokenizer is told to pad to its maximum; None: nowhere in these files."""
    for path in dict.fromkeys(one for one in files if one is not None):
        tree = parsed(path)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.keyword) and node.arg == "padding" and _says(node.value, "max_length"):
                return path, node.value.lineno
    return None


def _says(value: ast.expr, text: str) -> bool:
    return isinstance(value, ast.Constant) and value.value == text


def allocating_line(path: str, line: int) -> int | None:
    """Return the first line of the function at a line that makes a tensor of a shape; None: none does."""
    tree = parsed(path)
    functions = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.FunctionDef | ast.Lambda) and line in _range(node)
    ]
    inner = min(functions, key=lambda node: len(_range(node)), default=None)
    lines = list(_allocations(inner)) if inner is not None else []
    return min(lines, default=None)


def _range(node: ast.FunctionDef | ast.Lambda) -> range:
    if isinstance(node, ast.Lambda):
        return lines_of(node)
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return range(first, (node.end_lineno or node.lineno) + 1)


def _allocations(function: ast.AST) -> Iterator[int]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if name in _ALLOCATES:
                yield node.lineno
