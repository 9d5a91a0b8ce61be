"""What a loop over time goes over: `for t in range(n)` with `x[:, t]`, or the parts of a tensor themselves."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rows:
    """The time steps of a loop.

    Attributes:
        over: the sequence, a name or an attribute.
        dim: its dimension of time.
        num: how many steps there are; None: all.
        counter: the name of the step's number; empty: there is none.
        names: of the step's own part, and the line behind which it has the name.
    """

    over: ast.expr
    dim: int
    num: ast.expr | None
    counter: str
    names: Mapping[str, int]

    @property
    def root(self) -> str:
        """The first name of the sequence."""
        return dotted(self.over).partition(".")[0]

    def is_row(self, node: ast.expr) -> bool:
        """Whether an expression is the step's own part."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, node.lineno) < node.lineno
        part = _indexed(node, self.counter)
        return part is not None and part == (ast.unparse(self.over), self.dim)


def rows_of(loop: ast.For) -> Rows | None:
    """Return what a loop goes over; None: it cannot be told."""
    over, target, counter = loop.iter, loop.target, ""
    if isinstance(over, ast.Call) and ast.unparse(over.func) == "enumerate" and len(over.args) == 1:
        if not (isinstance(target, ast.Tuple) and len(target.elts) == 2):
            return None
        first, target = target.elts
        if not isinstance(first, ast.Name):
            return None
        over, counter = over.args[0], first.id
    if not isinstance(target, ast.Name):
        return None
    if isinstance(over, ast.Call) and ast.unparse(over.func) == "range":
        return _counted(loop, target.id, over.args[0]) if len(over.args) == 1 and not counter else None
    dim = 0
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "unbind":
        given = [*over.args, *(each.value for each in over.keywords if each.arg == "dim")]
        dims = [each.value for each in given if isinstance(each, ast.Constant)]
        if len(given) > 1 or len(dims) != len(given):
            return None
        over, dim = over.func.value, int(dims[0]) if dims else 0  # type: ignore[arg-type]
    if not dotted(over) or dim not in (0, 1):
        return None
    return Rows(over, dim, None, counter, {} if _times_stored(loop, target.id) else {target.id: 0})


def _counted(loop: ast.For, counter: str, num: ast.expr) -> Rows | None:
    """Return the tensor that is indexed with the counter where the cells' inputs come from."""
    named = {
        each.targets[0].id: (part, each.lineno)
        for each in loop.body
        if isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and isinstance(each.targets[0], ast.Name)
        and (part := _indexed(each.value, counter))
        and _times_stored(loop, each.targets[0].id) == 1
    }
    given = [
        each.args[0]
        for statement in loop.body
        for each in ast.walk(statement)
        if isinstance(each, ast.Call) and len(each.args) > 1
    ]
    parts = {part for each in given if (part := _indexed(each, counter))}
    parts |= {named[each.id][0] for each in given if isinstance(each, ast.Name) and each.id in named}
    if len(parts) != 1 or _times_stored(loop, counter):
        return None
    text, dim = parts.pop()
    names = {name: line for name, (part, line) in named.items() if part == (text, dim)}
    return Rows(ast.parse(text, mode="eval").body, dim, num, counter, names)


def _indexed(node: ast.expr, counter: str) -> tuple[str, int] | None:
    """Return the tensor of which an expression is a step, as text, and the dimension of time."""
    if not counter or not isinstance(node, ast.Subscript) or not dotted(node.value):
        return None
    index = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    at = [dim for dim, each in enumerate(index) if isinstance(each, ast.Name) and each.id == counter]
    whole = [each for each in index if isinstance(each, ast.Slice) and ast.unparse(each) == ":"]
    if len(at) != 1 or at[0] > 1 or len(whole) != len(index) - 1 or len(index) > 3:
        return None
    return ast.unparse(node.value), at[0]


def _times_stored(loop: ast.For, name: str) -> int:
    return sum(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
        for statement in loop.body
        for each in ast.walk(statement)
    )


def dotted(node: ast.expr) -> str:
    """Return a name, or an attribute of one, as text; empty: it is something else."""
    if isinstance(node, ast.Name):
        return node.id
    inner = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{inner}.{node.attr}" if inner and isinstance(node, ast.Attribute) else ""
