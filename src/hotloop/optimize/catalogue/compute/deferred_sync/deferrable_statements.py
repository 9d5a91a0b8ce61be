"""Single statements that can wait: what they fetch, what they write, and what of them has to be noted at once."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field

from hotloop.optimize.catalogue.compute.deferred_sync.name_uses import (
    OUTPUT,
    mentions,
    overlaps,
    path_of,
    writes_output,
)

ENTRY = "_hotloop_entry"
"""The name of what waited: the number of its statement, and its values."""
_METHODS = {"item": "i", "tolist": "l", "cpu": "c"}
_CASTS = {"float": "f", "int": "n"}
PLAIN = "v"
"""Of a value that is noted as it is; the other letters say how a tensor's value is asked for."""
_SINKS = frozenset(
    {
        "append",
        "appendleft",
        "extend",
        "add",
        "update",
        "add_scalar",
        "add_scalars",
        "add_text",
        "log",
        "log_metric",
        "log_metrics",
        "set_postfix",
        "set_postfix_str",
        "set_description",
        "set_description_str",
        "info",
        "debug",
        "warning",
        "write",
        "writerow",
        "track",
        "record",
    }
)
"""Methods that take a value and give nothing back that matters."""
_NOT_ALWAYS_EVALUATED = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.IfExp,
    ast.BoolOp,
    ast.NamedExpr,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
)


class CannotWait(Exception):  # noqa: N818 - an answer, not an error
    """Raised with the reason, as a clause: "its value decides what is evaluated"."""


def fetch_of(node: ast.AST) -> tuple[str, ast.expr] | None:
    """Return how a tensor's value is asked for, and the tensor; None: it is not."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and not node.args and node.func.attr in _METHODS:
        kind, operand = _METHODS[node.func.attr], node.func.value
    elif isinstance(node.func, ast.Name) and len(node.args) == 1 and node.func.id in _CASTS:
        kind, operand = _CASTS[node.func.id], node.args[0]
    else:
        return None
    while kind != "c" and isinstance(operand, ast.Call) and _is_cpu(operand):
        operand = operand.func.value  # type: ignore[attr-defined]
    if isinstance(operand, ast.Constant) or any(fetch_of(each) for each in ast.walk(operand)):
        return None
    return kind, operand


def _is_cpu(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "cpu" and not call.args


def fetches(node: ast.AST) -> bool:
    """Whether a tensor's value is asked for anywhere in it."""
    return any(fetch_of(each) is not None for each in ast.walk(node))


@dataclass(frozen=True)
class Written:
    """What a statement leaves behind: a name, and whether the object of that name is changed or the name is."""

    path: str
    in_place: bool


def written_by(statement: ast.stmt) -> Written | None:
    """Return what a statement that may wait writes; None: it is of no such kind."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if writes_output(call):
            return Written(OUTPUT, in_place=False)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SINKS:
            path = path_of(call.func.value)
            return Written(path, in_place=True) if path else None
        return None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    else:
        return None
    path = path_of(target)
    return Written(path, in_place=not isinstance(target, ast.Name)) if path else None


@dataclass
class Waiting:
    """A statement as it runs later.

    Attributes:
        statement: the user's.
        late: what runs, once its values are there.
        kinds: one letter for each value.
        values: what is evaluated where the statement stands.
    """

    statement: ast.stmt
    late: ast.stmt
    kinds: str = ""
    values: list[ast.expr] = field(default_factory=list)


def waiting(statement: ast.stmt, late_names: set[str], assigned: set[str]) -> Waiting:
    """Divide a statement into what is evaluated now and what runs later.

    Args:
        statement: of a kind that may wait.
        late_names: what statements that wait write.
        assigned: plain names that the loop assigns.

    Raises:
        CannotWait: with the reason.
    """
    made = Waiting(statement, copy.copy(statement))
    divide = _Divide(made, late_names, assigned)
    late = made.late
    if isinstance(late, ast.Expr):
        late.value = divide.call(late.value)  # type: ignore[arg-type]
    elif isinstance(late, ast.Assign):
        late.targets = [divide.target(late.targets[0])]
        late.value = divide.value(late.value)
    elif isinstance(late, ast.AugAssign):
        late.target = divide.target(late.target)  # type: ignore[assignment]
        late.value = divide.value(late.value)
    return made


class _Divide:
    def __init__(self, made: Waiting, late_names: set[str], assigned: set[str]) -> None:
        self._made = made
        self._late_names = late_names
        self._assigned = assigned

    def value(self, node: ast.expr) -> ast.expr:
        """Return an expression as it is evaluated later."""
        fetched = fetch_of(node)
        if fetched is not None:
            if self._mentions_late(fetched[1]):
                raise CannotWait("the tensor it asks is chosen by a value that is not there yet")
            return self._noted(fetched[0], fetched[1], node)
        if isinstance(node, ast.Constant):
            return node
        if not fetches(node) and not self._mentions_late(node):
            return self._noted(PLAIN, node, node)
        if isinstance(node, _NOT_ALWAYS_EVALUATED):
            raise CannotWait("it stands in an expression that is not always evaluated")
        if isinstance(node, ast.Name):
            return node
        return self.call(node) if isinstance(node, ast.Call) else self._parts(node)

    def call(self, call: ast.Call) -> ast.Call:
        """Return a call with its arguments divided; who is called is looked up later."""
        late = copy.copy(call)
        path = path_of(call.func)
        if path and not self._is_late(path):
            if path.split(".")[0] in self._assigned and not isinstance(call.func, ast.Attribute):
                raise CannotWait(f"the loop changes {path}")
        elif isinstance(call.func, ast.Attribute):
            late.func = self._parts(call.func)
        late.args = [self._argument(each) for each in call.args]
        late.keywords = [ast.keyword(arg=each.arg, value=self.value(each.value)) for each in call.keywords]
        return late

    def target(self, node: ast.expr) -> ast.expr:
        """Return where is written, with its index noted."""
        if not isinstance(node, ast.Subscript):
            return node
        late = copy.copy(node)
        late.value = self.target(node.value)
        late.slice = self.value(node.slice)
        return late

    def _argument(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.Starred):
            return self.value(node)
        late = copy.copy(node)
        late.value = self.value(node.value)
        return late

    def _parts(self, node: ast.expr) -> ast.expr:
        late = copy.copy(node)
        for name, part in ast.iter_fields(node):
            if isinstance(part, ast.expr):
                setattr(late, name, self._part(part))
            elif isinstance(part, list):
                setattr(late, name, [self._part(each) for each in part])
        return late

    def _part(self, part: ast.AST) -> ast.AST:
        if isinstance(part, (ast.FormattedValue, ast.JoinedStr, ast.Slice)):
            return self._parts(part)
        return self.value(part) if isinstance(part, ast.expr) else part

    def _is_late(self, path: str) -> bool:
        return is_written(self._late_names, path)

    def _mentions_late(self, node: ast.AST) -> bool:
        return any(self._is_late(path) for path in mentions(node))

    def _noted(self, kind: str, now: ast.expr, node: ast.expr) -> ast.expr:
        self._made.kinds += kind
        self._made.values.append(now)
        value = ast.parse(f"{ENTRY}[1][{len(self._made.values) - 1}]", mode="eval").body
        for each in ast.walk(value):
            ast.copy_location(each, node)
        return value


def is_written(written: set[str], path: str) -> bool:
    """Whether a name is, or is a part of, something written."""
    return any(overlaps(path, each) for each in written)
