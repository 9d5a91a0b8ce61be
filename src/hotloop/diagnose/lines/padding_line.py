"""Where a batch gets its width: a keyword of a tokenizer, or what a collate function allocates."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotloop.diagnose.lines.parsed_sources import lines_of, parsed

Place = tuple[str | None, int | None]
_ALLOCATES = frozenset(
    {"full", "zeros", "ones", "empty", "new_full", "new_zeros", "new_ones", "new_empty", "pad"}
)


def padding_line(collate: Place, loader: Place, script: str | None) -> Place:
    """Return the line that decides, the nearest to it that is known.

    Args:
        collate: where the program's collate function begins; None: it has none of its own.
        loader: where the loader is made.
        script: the program's main file.
    """
    for path in dict.fromkeys(one for one in (collate[0], loader[0], script) if one is not None):
        tree = parsed(path)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.keyword) and node.arg == "padding" and _says(node.value, "max_length"):
                return path, node.value.lineno
    own, begin = collate
    if own is None or begin is None:
        return loader
    line = _allocated(own, begin)
    return own, begin if line is None else line


def _says(value: ast.expr, text: str) -> bool:
    return isinstance(value, ast.Constant) and value.value == text


def _allocated(path: str, line: int) -> int | None:
    """Return the first line in a function that makes a tensor of a shape."""
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
