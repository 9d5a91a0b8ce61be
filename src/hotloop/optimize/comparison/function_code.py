"""The functions of a running model, and their code with other expressions in it.

A function's code is exchanged, not the function: what has imported it, the class that holds it and its signature stay.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Collection, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any, NamedTuple

OURS = "_hotloop_"
"""Names begin with it that only code which was changed here refers to."""


class Place(NamedTuple):
    """Where an expression stands."""

    line: int
    column: int
    end_column: int | None
    kind: type[ast.expr]


def place_of(node: ast.expr) -> Place:
    """Return where an expression stands."""
    return Place(node.lineno, node.col_offset, node.end_col_offset, type(node))


def functions_of(cls: type) -> Iterator[FunctionType]:
    """Return the methods of a class that torch did not write, and the program's functions that they call by name."""
    seen: set[int] = set()
    todo = [
        value
        for base in cls.__mro__
        if not base.__module__.startswith(("torch.", "builtins"))
        for value in vars(base).values()
    ]
    while todo:
        function = todo.pop()
        if isinstance(function, staticmethod):
            function = function.__func__
        if not isinstance(function, FunctionType) or id(function) in seen or _is_foreign(function):
            continue
        seen.add(id(function))
        yield function
        todo += [function.__globals__.get(name) for name in function.__code__.co_names]


def _is_foreign(function: FunctionType) -> bool:
    return function.__module__ is None or function.__module__.split(".")[0] in {
        "torch",
        "hotloop",
        "builtins",
    }


def source_of(function: FunctionType) -> str:
    """Return the text of the file that a function stands in; empty: there is none."""
    return "".join(linecache.getlines(function.__code__.co_filename))


def changed_code(
    function: FunctionType, expressions: Mapping[Place, str], gone: Collection[tuple[int, int]] = ()
) -> CodeType | None:
    """Return a function's code with other expressions in it; None: the source is not what runs.

    Args:
        function: of the program.
        expressions: what stands in the place of an expression.
        gone: line and column of statements that are left out.
    """
    own, text = function.__code__, source_of(function)
    path = own.co_filename
    as_is = _named(compile(text, path, "exec", dont_inherit=True), own)
    if as_is is None or as_is.co_code != own.co_code or as_is.co_freevars != own.co_freevars:
        return None
    tree = _Changed(expressions, gone).visit(ast.parse(text))
    changed = _named(compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True), own)
    return changed if changed is not None and changed.co_freevars == own.co_freevars else None


def why_unchanged(function: FunctionType) -> str:
    """Return why there is no changed code."""
    if any(name.startswith(OURS) for name in function.__code__.co_names):
        return "another optimization has changed it already"
    return "the file has changed since it was loaded"


def _named(code: CodeType, like: CodeType) -> CodeType | None:
    """Return the code of a function inside that of a whole file."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if (constant.co_name, constant.co_firstlineno) == (like.co_name, like.co_firstlineno):
                return constant
            inner = _named(constant, like)
            if inner is not None:
                return inner
    return None


class _Changed(ast.NodeTransformer):
    """Puts expressions in, and leaves out what only led to them."""

    def __init__(self, expressions: Mapping[Place, str], gone: Collection[tuple[int, int]]) -> None:
        self._expressions = expressions
        self._gone = gone

    def visit(self, node: ast.AST) -> Any:
        """Return what stands in the place of a node."""
        if isinstance(node, ast.stmt) and (node.lineno, node.col_offset) in self._gone:
            return None
        text = self._expressions.get(place_of(node)) if isinstance(node, ast.expr) else None
        if text is None:
            return self.generic_visit(node)
        new = ast.parse(text, mode="eval").body
        for inner in ast.walk(new):
            ast.copy_location(inner, node)
        return new
