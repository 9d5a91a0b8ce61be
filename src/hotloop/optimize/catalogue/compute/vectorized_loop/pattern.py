"""The loops of a file whose turns can be made in one call."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

from hotloop.optimize.program.purity import NotIndependent, Purity

ROW = "_hotloop_row_{}"


@dataclass
class Result:
    """What a turn gives, and where it goes.

    Attributes:
        kind: `sum`, `append` or `place`.
        name: of the sum, the list or the tensor.
        value: what one turn gives.
        statement: the user's.
    """

    kind: str
    name: str
    value: ast.expr
    statement: ast.stmt


@dataclass
class RowLoop:
    """A loop over rows.

    Attributes:
        node: the loop.
        block: the statements that it stands among.
        over: the tensors whose rows a turn is given.
        rows: the names of those rows within a turn.
        num: how many turns there are; None: as many as there are rows.
        temporaries: assignments of a turn, in order, in terms of its rows.
        results: what comes of it.
        called: what must be a module of torch's.
    """

    node: ast.For
    block: list[ast.stmt]
    over: list[ast.expr] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    num: ast.expr | None = None
    temporaries: list[ast.Assign] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    called: list[ast.expr] = field(default_factory=list)


def row_loops(tree: ast.Module) -> tuple[list[RowLoop], dict[int, str]]:
    """Return the loops that can be made in one call, and the lines of others that look like it, with the reason."""
    found: list[RowLoop] = []
    left: dict[int, str] = {}
    for scope in [each for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.Module))]:
        for node, block in _loops(scope):
            loop = RowLoop(node, block)
            try:
                _Reader(loop, Purity(tree), scope, tree).read()
            except NotIndependent as reason:
                if _takes_rows(node):
                    left[node.lineno] = str(reason)
            else:
                found.append(loop)
    return found, left


def _loops(scope: ast.AST) -> Iterator[tuple[ast.For, list[ast.stmt]]]:
    todo = [scope]
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                todo.append(child)
        for _, block in ast.iter_fields(node):
            if isinstance(block, list):
                yield from ((each, block) for each in block if isinstance(each, ast.For))


def _takes_rows(loop: ast.For) -> bool:
    """Whether it indexes something with its counter, or adds up what it gets one by one."""
    names = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    over_range = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "range"
    indexed = any(
        isinstance(each, ast.Subscript) and _first(each.slice) in names
        for statement in loop.body
        for each in ast.walk(statement)
    )
    trains = any(isinstance(each, ast.Attribute) and each.attr == "backward" for each in ast.walk(loop))
    return not trains and (indexed if over_range else isinstance(loop.iter, (ast.Name, ast.Attribute)))


def _first(index: ast.expr) -> str:
    first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    return first.id if isinstance(first, ast.Name) else ""


class _Reader:
    """Reads one loop; see `read`."""

    def __init__(self, loop: RowLoop, purity: Purity, scope: ast.AST, tree: ast.Module) -> None:
        self._loop = loop
        self._purity = purity
        self._scope = scope
        self._tree = tree
        self._counter = ""
        self._indexed: dict[str, str] = {}
        """Tensors that are indexed with the counter, and the names of their rows."""

    def read(self) -> None:
        """Fill in the loop.

        Raises:
            NotIndependent: with the reason.
        """
        loop, node = self._loop, self._loop.node
        if node.orelse:
            raise NotIndependent("it has an else")
        self._head(node.target, node.iter)
        for statement in node.body:
            self._statement(statement)
        if not loop.results or not loop.over:
            raise NotIndependent("nothing comes of its turns that could be computed at once")
        self._require_independent()
        self._require_unread()
        for value in [*(each.value for each in loop.temporaries), *(each.value for each in loop.results)]:
            self._purity.require(value)
        for over in [*loop.over, *([loop.num] if loop.num is not None else [])]:
            self._purity.require(over)
        loop.called = list(self._purity.called.values())
        inner = {
            name for each in loop.temporaries for target in each.targets for name in [ast.unparse(target)]
        }
        for path in self._purity.called:
            if path.partition(".")[0] in {*inner, *loop.rows, self._counter}:
                raise NotIndependent(f"{path}() may do more than compute")

    # The head ------------------------------------------------------------------------------------------------------

    def _head(self, target: ast.expr, over: ast.expr) -> None:
        name = over.func.id if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) else ""
        if isinstance(over, ast.Call) and name and not over.keywords:
            if name == "range" and len(over.args) == 1 and isinstance(target, ast.Name):
                self._counter, self._loop.num = target.id, over.args[0]
                return
            pair = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            if (
                name == "enumerate"
                and len(over.args) == 1
                and len(pair) == 2
                and isinstance(pair[0], ast.Name)
            ):
                self._counter = pair[0].id
                self._head_of_rows(pair[1], over.args[0])
                return
        self._head_of_rows(target, over)

    def _head_of_rows(self, target: ast.expr, over: ast.expr) -> None:
        parts, targets = [over], [target]
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "zip":
            parts, targets = over.args, list(getattr(target, "elts", []))
        for part, each in zip(parts, targets, strict=len(parts) == len(targets)):
            if not isinstance(each, ast.Name) or not isinstance(
                part, (ast.Name, ast.Attribute, ast.Subscript)
            ):
                raise NotIndependent("what it goes over is not a tensor that has a name")
            self._loop.over.append(part)
            self._loop.rows.append(each.id)

    # The body ------------------------------------------------------------------------------------------------------

    def _statement(self, statement: ast.stmt) -> None:
        result = self._result(statement)
        if result is not None:
            self._loop.results.append(result)
        elif isinstance(statement, ast.Assign) and all(
            isinstance(each, ast.Name) for each in statement.targets
        ):
            changed = ast.Assign(copy.deepcopy(statement.targets), self._in_rows(statement.value))
            self._loop.temporaries.append(ast.copy_location(changed, statement))
        else:
            raise NotIndependent(f"line {statement.lineno} does more than name what it computes")

    def _result(self, statement: ast.stmt) -> Result | None:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
            if isinstance(statement.target, ast.Name):
                return Result("sum", statement.target.id, self._in_rows(statement.value), statement)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            return self._assigned(statement, statement.targets[0])
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            is_append = (
                isinstance(call.func, ast.Attribute) and call.func.attr == "append" and len(call.args) == 1
            )
            if is_append and isinstance(call.func.value, ast.Name):  # type: ignore[attr-defined]
                name = call.func.value.id  # type: ignore[attr-defined]
                return Result("append", name, self._in_rows(call.args[0]), statement)
        return None

    def _assigned(self, statement: ast.Assign, target: ast.expr) -> Result | None:
        value = statement.value
        if isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            for own, other in ((value.left, value.right), (value.right, value.left)):
                if isinstance(own, ast.Name) and own.id == target.id:
                    return Result("sum", target.id, self._in_rows(other), statement)
        is_place = (
            isinstance(target, ast.Subscript)
            and isinstance(target.value, ast.Name)
            and isinstance(target.slice, ast.Name)
            and target.slice.id == self._counter
        )
        if is_place:
            return Result("place", target.value.id, self._in_rows(value), statement)  # type: ignore[attr-defined]
        return None

    def _in_rows(self, value: ast.expr) -> ast.expr:
        """Return an expression in terms of a turn's rows: `x[i]` is one, `x[i, 0]` and `x[i:i+1]` are made of one."""
        return _Rows(self).visit(copy.deepcopy(value)) if self._counter else copy.deepcopy(value)

    def row_of(self, tensor: ast.expr) -> str:
        """Return the name of a tensor's row in a turn."""
        text = ast.unparse(tensor)
        if text not in self._indexed:
            self._indexed[text] = ROW.format(len(self._indexed))
            self._loop.over.append(tensor)
            self._loop.rows.append(self._indexed[text])
        return self._indexed[text]

    @property
    def counter(self) -> str:
        """The name of the counter; empty: there is none."""
        return self._counter

    # Independence --------------------------------------------------------------------------------------------------

    def _require_independent(self) -> None:
        loop = self._loop
        made = {
            target.id for each in loop.temporaries for target in each.targets if isinstance(target, ast.Name)
        }
        sinks = [each.name for each in loop.results]
        known: set[str] = set()
        for value, names in [
            *((each.value, each.targets) for each in loop.temporaries),
            *((each.value, []) for each in loop.results),
        ]:
            read = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
            carried = (read & made) - known
            if carried:
                raise NotIndependent(f"{min(carried)} is carried from turn to turn")
            if read & set(sinks):
                raise NotIndependent(f"{min(read & set(sinks))} is read in the loop that makes it")
            if self._counter and self._counter in read:
                raise NotIndependent(f"it counts with {self._counter} beside taking rows")
            known |= {target.id for target in names if isinstance(target, ast.Name)}
        written = made | set(sinks)
        for over in loop.over:
            if written & {each.id for each in ast.walk(over) if isinstance(each, ast.Name)}:
                raise NotIndependent("it changes what it goes over")
        if len(set(sinks)) < len(sinks) or made & set(sinks):
            raise NotIndependent("a turn adds to the same thing twice")
        self._require_order()

    def _require_order(self) -> None:
        """A temporary that is named after a result was taken would be moved before it."""
        first = min(self._loop.node.body.index(each.statement) for each in self._loop.results)
        late = [
            s
            for s in self._loop.node.body[first:]
            if s not in [each.statement for each in self._loop.results]
        ]
        if late:
            raise NotIndependent(f"line {late[0].lineno} comes after a result was taken")

    def _require_unread(self) -> None:
        """What a turn names is not read behind the loop, or before it in the next turn of a loop around it."""
        node = self._loop.node
        within = {id(each) for each in ast.walk(node)}
        names = {
            each.id
            for part in [node.target, *self._loop.temporaries]
            for each in ast.walk(part)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        for name in names:
            others = [
                each
                for each in ast.walk(self._scope)
                if isinstance(each, ast.Name) and each.id == name and id(each) not in within
            ]
            by_line = sorted((each.lineno, not isinstance(each.ctx, ast.Load)) for each in others)
            behind = [is_stored for line, is_stored in by_line if line > node.lineno]
            if (behind and not behind[0]) or (by_line and not by_line[0][1]):
                raise NotIndependent(f"{name} is read outside of the loop")
            if isinstance(self._scope, ast.Module) and _is_read_in_functions(self._tree, name):
                raise NotIndependent(f"{name} is read in a function")


def _is_read_in_functions(tree: ast.Module, name: str) -> bool:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        own = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
        uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
        if uses and name not in own and all(isinstance(each.ctx, ast.Load) for each in uses):
            return True
    return False


class _Rows(ast.NodeTransformer):
    def __init__(self, reader: _Reader) -> None:
        self._reader = reader

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        index, counter = node.slice, self._reader.counter
        if isinstance(index, ast.Name) and index.id == counter:
            return self._row(node)
        if isinstance(index, ast.Tuple) and _first(index) == counter:
            rest = index.elts[1:]
            inner: ast.expr = rest[0] if len(rest) == 1 else ast.Tuple(rest, ast.Load())
            return self.generic_visit(
                ast.copy_location(ast.Subscript(self._row(node), inner, node.ctx), node)
            )
        if isinstance(index, ast.Slice) and ast.unparse(index).replace(" ", "") == f"{counter}:{counter}+1":
            return ast.copy_location(ast.Subscript(self._row(node), ast.Constant(None), node.ctx), node)
        return self.generic_visit(node)

    def _row(self, node: ast.Subscript) -> ast.expr:
        return ast.copy_location(ast.Name(self._reader.row_of(node.value), ast.Load()), node)
