"""The loops of a file that do nothing with a recurrent cell's state but hand it to the next time step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from hotloop.optimize.catalogue.compute.fused_recurrence.loop_range import Rows, dotted, rows_of

ROW = -1
"""The input of a cell that is given the sequence; else the number of the cell whose output it is given."""
_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class NotARecurrence(Exception):  # noqa: N818 - an answer, not an error
    """Raised with the reason, as a clause: "h is changed beside its cell"."""


@dataclass(frozen=True)
class CellCall:
    """One cell of a loop.

    Attributes:
        statement: `h, c = self.cell(x_t, (h, c))`.
        cell: what is called.
        given: `ROW`, or the number of the cell of this loop whose output it is given.
        states: the arguments behind the first.
        reads_first: of a state that has one name the loop's other statements read `state[0]`, and nothing else.
    """

    statement: ast.Assign
    cell: ast.expr
    given: int
    states: tuple[ast.expr, ...]
    reads_first: bool


@dataclass(frozen=True)
class TimeLoop:
    """A loop over time steps.

    Attributes:
        node: the loop.
        block: the statements that it stands among.
        rows: what it goes over.
        calls: its cells, in order.
    """

    node: ast.For
    block: list[ast.stmt]
    rows: Rows
    calls: tuple[CellCall, ...]


def time_loops(tree: ast.Module) -> tuple[list[TimeLoop], dict[int, str]]:
    """Return the loops that one call can make, and the lines of others that look like it, with the reason."""
    found: list[TimeLoop] = []
    left: dict[int, str] = {}
    for scope in [each for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.Module))]:
        for node, block in _loops(scope):
            statements = [each for each in node.body if _states(each)]
            if not statements:
                continue
            try:
                found.append(_Reader(node, block, statements).read())
            except NotARecurrence as reason:
                left[node.lineno] = str(reason)
    return found, left


def _loops(scope: ast.AST) -> Iterator[tuple[ast.For, list[ast.stmt]]]:
    todo = [scope]
    while todo:
        node = todo.pop()
        todo += [
            child for child in ast.iter_child_nodes(node) if not isinstance(child, (*_SCOPES, ast.Lambda))
        ]
        for _, block in ast.iter_fields(node):
            if isinstance(block, list):
                yield from ((each, block) for each in block if isinstance(each, ast.For))


def _states(statement: ast.stmt) -> list[str]:
    """Return the names that a statement hands to a call behind its first argument, and takes from it; empty: none."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    call = statement.value
    if not isinstance(call, ast.Call) or call.keywords or len(call.args) < 2 or not _is_place(call.func):
        return []
    taken = _names([statement.targets[0]])
    return taken if taken and taken == _names(call.args[1:]) else []


def _names(nodes: list[ast.expr]) -> list[str]:
    """Return the names in nodes that are nothing but names, in tuples or not; empty: there is something else."""
    names: list[str] = []
    for node in nodes:
        inner = _names(list(node.elts)) if isinstance(node, ast.Tuple) else []
        if isinstance(node, ast.Name):
            names.append(node.id)
        elif inner:
            names += inner
        else:
            return []
    return names


def _is_place(node: ast.expr) -> bool:
    """Whether it is a name, or an attribute or a numbered part of one: `self.cells[0]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return _is_place(node.value)
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_place(node.value))


class _Reader:
    """Reads one loop."""

    def __init__(self, node: ast.For, block: list[ast.stmt], statements: list[ast.stmt]) -> None:
        self._node = node
        self._block = block
        self._statements = [each for each in statements if isinstance(each, ast.Assign)]

    def read(self) -> TimeLoop:
        """Return the loop.

        Raises:
            NotARecurrence: with the reason.
        """
        rows = rows_of(self._node)
        if rows is None:
            raise NotARecurrence("it does not go over a tensor's time steps one by one")
        if any(isinstance(each, (*_LEAVES, *_SCOPES)) for each in self._inside()) or self._node.orelse:
            raise NotARecurrence("it may end early, or a function in it may be called later")
        self._require_kept(rows)
        calls: list[CellCall] = []
        outputs: dict[str, int] = {}
        for statement in self._statements:
            calls.append(self._call(statement, rows, outputs))
            outputs[_states(statement)[0]] = len(calls) - 1
        return TimeLoop(self._node, self._block, rows, tuple(calls))

    def _call(self, statement: ast.Assign, rows: Rows, outputs: dict[str, int]) -> CellCall:
        call = statement.value
        assert isinstance(call, ast.Call)
        given = call.args[0]
        if rows.is_row(given):
            source = ROW
        elif isinstance(given, ast.Name) and given.id in outputs:
            source = outputs[given.id]
        else:
            raise NotARecurrence(f"{ast.unparse(given)}, which its cell is given, is made in the loop")
        names = _states(statement)
        for name in names[1:]:
            if self._reads(name, statement):
                raise NotARecurrence(
                    f"{name}, which one call gives for the last step alone, is read in the loop"
                )
        reads_first = len(names) > 1 or self._reads_first(names[0], statement)
        return CellCall(statement, call.func, source, tuple(call.args[1:]), reads_first)

    def _require_kept(self, rows: Rows) -> None:
        """Nothing else in the loop may write to what the cells are given, or are."""
        own = [name for each in self._statements for name in _states(each)]
        if len(set(own)) < len(own):
            raise NotARecurrence("one state goes through two cells")
        kept = {id(node) for each in self._statements for node in ast.walk(each.targets[0])}
        names = {*own, rows.root, *map(_root, self._statements)}
        for node in self._inside():
            if id(node) not in kept and _written(node) in names:
                raise NotARecurrence(f"{_written(node)} is changed in the loop")

    def _reads(self, name: str, statement: ast.stmt) -> list[ast.Name]:
        own = {id(each) for each in ast.walk(statement)}
        return [
            each
            for each in self._inside()
            if isinstance(each, ast.Name) and each.id == name and id(each) not in own
        ]

    def _reads_first(self, name: str, statement: ast.stmt) -> bool:
        first = [
            each
            for each in self._inside()
            if isinstance(each, ast.Subscript)
            and isinstance(each.value, ast.Name)
            and each.value.id == name
            and isinstance(each.slice, ast.Constant)
            and each.slice.value == 0
        ]
        return len(first) == len(self._reads(name, statement))

    def _inside(self) -> Iterator[ast.AST]:
        for statement in self._node.body:
            yield from ast.walk(statement)


def _root(statement: ast.Assign) -> str:
    """Return the first name of the cell that a statement calls."""
    assert isinstance(statement.value, ast.Call)
    return next(each.id for each in ast.walk(statement.value.func) if isinstance(each, ast.Name))


def _written(node: ast.AST) -> str:
    """Return the first name of what a node writes to, or changes in place; empty: nothing."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return node.id
    if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return dotted(node.value).partition(".")[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        in_place = name.endswith("_") and not name.endswith("__")
        return dotted(node.func.value).partition(".")[0] if in_place else ""
    return ""
