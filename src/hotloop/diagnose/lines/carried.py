"""Whether a turn of a loop needs what an earlier one has made, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_MUTATING = frozenset(
    {"append", "appendleft", "add", "extend", "insert", "pop", "remove", "setdefault", "update"}
)
"""Methods that change what they are called of."""
_WHOLE = frozenset({"int", "len", "max", "min", "range", "sum"})
"""Functions of whole numbers."""


def needs_earlier_turns(loop: ast.For) -> bool:
    """Whether a turn reads what earlier turns made, or is the same each time, so that only a state differs."""
    counters = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    turn = _Turn(counters)
    used = {each.id for part in loop.body for each in ast.walk(part) if isinstance(each, ast.Name)}
    if not counters & used:
        return True
    made = (
        {path for part in loop.body for path in turn.writes(part)} - counters - _offsets(loop.body, counters)
    )
    return turn.carries(loop.body, made, set())


class _Turn:
    """Reads and writes of a turn: names, and attributes with all that they belong to (`self.state`).

    Args:
        counters: names that each turn has for itself.
    """

    def __init__(self, counters: set[str]) -> None:
        self._counters = counters

    def carries(self, body: list[ast.stmt], made: set[str], known: set[str]) -> bool:
        """Whether something is read before the turn has made it itself.

        Args:
            body: statements of a turn, or of a block within it.
            made: what turns make.
            known: what this one has made so far; grows.
        """
        for statement in body:
            blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
            if any(blocks):
                heads = [
                    one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.expr | ast.withitem)
                ]
                if any(self._meets(head, made - known) for head in heads):
                    return True
                known |= {path for head in heads for path in self.wholes(head)}
                if any(self.carries(block, made, known) for block in blocks):
                    return True
                continue
            if not _adds_to_itself(statement) and self._meets(_read_part(statement), made - known):
                return True
            known |= set(self.wholes(statement))
        return False

    def writes(self, node: ast.AST) -> Iterator[str]:
        """Yield what is written, whole or in part."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name | ast.Attribute | ast.Subscript) and isinstance(each.ctx, ast.Store):
                yield _path(each)
            elif isinstance(each, ast.Call) and _changes(each):
                yield _path(each.func.value)  # type: ignore[attr-defined]

    def wholes(self, node: ast.AST) -> Iterator[str]:
        """Yield what is written as a whole: nothing of an earlier turn is left of it."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Store):
                yield _path(each)

    def _meets(self, node: ast.AST, made: set[str]) -> bool:
        reads = list(self._reads(node))
        return any(read == path or read.startswith(f"{path}.") for read in reads for path in made)

    def _reads(self, node: ast.AST) -> Iterator[str]:
        """Yield what is read; not an element that is the turn's own, nor what is written to in part."""
        if isinstance(node, ast.Subscript):
            yield from self._reads(node.slice)
            if not isinstance(node.ctx, ast.Store) and not self._is_own(node.slice):
                yield from self._reads(node.value)
        elif isinstance(node, ast.Call) and _changes(node):
            for part in (*node.args, *node.keywords):
                yield from self._reads(part)
        elif isinstance(node, ast.Name | ast.Attribute):
            if isinstance(node.ctx, ast.Load):
                yield _path(node)
            if isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Name):
                yield from self._reads(node.value)
        else:
            for part in ast.iter_child_nodes(node):
                yield from self._reads(part)

    def _is_own(self, index: ast.AST) -> bool:
        """`x[i]` and `x[:, i]` with a counter: no other turn has that element."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        return any(isinstance(part, ast.Name) and part.id in self._counters for part in parts)


def _path(node: ast.AST) -> str:
    """Return `self.state` of `self.state[0]`; of what is no name a word that nothing else has."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_path(node.value)}.{node.attr}"
    return _path(node.value) if isinstance(node, ast.Subscript) else f"<{id(node)}>"


def _changes(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _MUTATING


def _read_part(statement: ast.stmt) -> ast.AST:
    """Return what of a statement is read: of `total += part` the part, since the order of terms does not matter."""
    return statement.value if isinstance(statement, ast.AugAssign) else statement


def _adds_to_itself(statement: ast.stmt) -> bool:
    """`loss = loss + part`, and not `x = x + layer(x)`."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return False
    value, targets = statement.value, {_path(target) for target in statement.targets}
    read = [each.id for each in ast.walk(value) if isinstance(each, ast.Name) and each.id in targets]
    sides = (value.left, value.right)
    at_a_side = any(isinstance(side, ast.Name) and side.id in targets for side in sides)
    return isinstance(value.op, ast.Add) and len(read) == 1 and at_a_side


def _offsets(body: Iterable[ast.stmt], counters: set[str]) -> set[str]:
    """Return names that hold whole numbers counted from turn to turn: they say where a turn's rows begin."""
    values: dict[str, list[ast.AST]] = {}
    for each in (node for part in body for node in ast.walk(part)):
        for target in _targets(each):
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(each.value)  # type: ignore[attr-defined]
    found = set(values)
    while True:  # one may be counted from another
        left = {name for name in found if all(_is_whole(value, counters | found) for value in values[name])}
        if left == found:
            return found
        found = left


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AugAssign) else []


def _is_whole(value: ast.AST, names: set[str]) -> bool:
    """Whether an expression is made of whole numbers and such names alone."""
    for each in ast.walk(value):
        if isinstance(each, ast.Name) and each.id not in names | _WHOLE:
            return False
        if isinstance(each, ast.Call) and not (isinstance(each.func, ast.Name) and each.func.id in _WHOLE):
            return False
        if isinstance(each, ast.Attribute | ast.Subscript | ast.List | ast.Dict):
            return False
        if isinstance(each, ast.Constant) and not isinstance(each.value, int):
            return False
    return True
