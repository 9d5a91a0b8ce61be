"""Names that run along with a loop: where in something flat the next piece begins."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
"""What makes whole numbers from whole numbers."""


def offsets(loop: ast.For) -> set[str]:
    """Return the names that run along with a loop: whole numbers that only slices and offsets are made from."""
    stores: dict[str, list[ast.expr | None]] = {}
    for part in loop.body:
        for node in ast.walk(part):
            for name, value in _given(node):
                stores.setdefault(name, []).append(value)
    found = {name for name, values in stores.items() if all(map(_is_whole, values))}
    while found:
        kept = found - set(_read_elsewhere(loop.body, found))
        if kept == found:
            break
        found = kept
    return found


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that a node gives a value to, with the value; None: it is not written there."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        yield node.targets[0].id, node.value
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value if isinstance(node.op, _WHOLE) else None
    elif isinstance(
        node, ast.Assign | ast.For | ast.AnnAssign | ast.NamedExpr | ast.withitem | ast.comprehension
    ):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.stmt):
                yield from ((name.id, None) for name in _names(child) if isinstance(name.ctx, ast.Store))


def _is_whole(value: ast.expr | None) -> bool:
    """Whether an expression looks like a whole number: `at + len(x)`, `x.shape[0]`, `n`."""
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, _WHOLE) and _is_whole(value.left) and _is_whole(value.right)
    if isinstance(value, ast.Call):
        called = value.func
        return (isinstance(called, ast.Name) and called.id in ("len", "int")) or (
            isinstance(called, ast.Attribute) and called.attr in ("size", "numel", "item")
        )
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Attribute) and value.value.attr == "shape"
    return isinstance(value, ast.Name) or (isinstance(value, ast.Constant) and isinstance(value.value, int))


def _read_elsewhere(body: Iterable[ast.AST], names: set[str]) -> Iterator[str]:
    """Yield the names that are read for something else than the bound of a slice, or the next of such names."""
    for node in body:
        if isinstance(node, ast.Name):
            if node.id in names and isinstance(node.ctx, ast.Load):
                yield node.id
            continue
        given = {name for name, _ in _given(node)}
        if given and given <= names:
            continue
        if isinstance(node, ast.Subscript):
            yield from _read_elsewhere([node.value], names)
            yield from _read_elsewhere(_inside_bounds(node.slice), names)
        else:
            yield from _read_elsewhere(ast.iter_child_nodes(node), names)


def _inside_bounds(bound: ast.AST) -> Iterator[ast.AST]:
    """Yield what in a subscript is no plain arithmetic of names."""
    if isinstance(bound, ast.Slice | ast.Tuple | ast.BinOp | ast.UnaryOp):
        for child in ast.iter_child_nodes(bound):
            yield from _inside_bounds(child)
    elif not isinstance(bound, ast.Name):
        yield bound


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Name))
