"""The functions of a running model that write attention out, and their code with the call in its place.

A function's code is exchanged, not the function: what has imported it, the class that holds it and its signature stay.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from hotloop.optimize.attention.kernel import chosen_kernel, fused_attention
from hotloop.optimize.attention.pattern import Attention, attentions
from hotloop.optimize.comparison.exchange import Exchange

CALL = "_hotloop_attention"
"""By this name a changed function knows what it calls; it stands in the globals of the user's module."""
COUNTED_CALLS = 64
"""Calls that are counted; then the functions call torch's own, with no frame of ours between."""


class Written(Exchange):
    """A function that writes attention out.

    Args:
        function: of the program.
        found: what it writes.
        fused: its code with the calls.
    """

    def __init__(self, function: FunctionType, found: list[Attention], fused: CodeType) -> None:
        super().__init__(f"{function.__qualname__} (line {found[0].line})")
        self._function = function
        self._own = function.__code__
        self._fused = fused
        self.kernel = ""
        """That torch chose in the first call; empty: there was none."""

    def put(self, on: bool) -> None:
        """Let the function run the calls, or its own code again."""
        if on:
            counts = self.num_calls < COUNTED_CALLS
            self._function.__globals__[CALL] = self._counted if counts else fused_attention()
        self._function.__code__ = self._fused if on else self._own

    def _counted(self, *args: Any, **kwargs: Any) -> Any:
        """Call torch's function, note which kernel it chooses, and give way."""
        self.num_calls += 1
        if not self.kernel:
            self.kernel = chosen_kernel(*args, **kwargs)
        if self.num_calls >= COUNTED_CALLS:
            self._function.__globals__[CALL] = fused_attention()
        return fused_attention()(*args, **kwargs)


def written_by(root: Any) -> tuple[list[Written], list[str]]:
    """Return the functions of a model that write attention out, and why others are left."""
    found: dict[int, Written] = {}
    left: dict[str, None] = {}
    reads: dict[str, list[Attention]] = {}
    for module in root.modules():
        for function in functions_of(type(module)):
            if id(function) not in found:
                written = _read(function, reads, left)
                if written is None:
                    continue
                found[id(function)] = written
            found[id(function)].modules.append(module)
    return list(found.values()), list(left)


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


def _read(function: FunctionType, reads: dict[str, list[Attention]], left: dict[str, None]) -> Written | None:
    path = function.__code__.co_filename
    if path not in reads:
        text = "".join(linecache.getlines(path))
        reads[path] = attentions(text) if "softmax" in text.lower() else []
    here = [each for each in reads[path] if each.function == function.__qualname__]
    for each in here:
        if each.refused:
            left[f"{each.function} (line {each.line}): {each.refused}"] = None
    usable = [each for each in here if not each.refused]
    if not usable:
        return None
    fused = fused_code(path, function.__code__, usable)
    if fused is None:
        left[f"{function.__qualname__} (line {usable[0].line}): the file has changed since it was loaded"] = (
            None
        )
        return None
    return Written(function, usable, fused)


def fused_code(path: str, own: CodeType, found: Iterable[Attention]) -> CodeType | None:
    """Return a function's code with calls in place of what is written out; None: the source is not what runs."""
    text = "".join(linecache.getlines(path))
    as_is = _named(compile(text, path, "exec", dont_inherit=True), own)
    if as_is is None or as_is.co_code != own.co_code or as_is.co_freevars != own.co_freevars:
        return None
    places = {(each.line, each.product.col_offset, each.product.end_col_offset): each for each in found}
    gone = {(line.lineno, line.col_offset) for each in places.values() for line in each.gone}
    tree = _Fused(places, gone).visit(ast.parse(text))
    fused = _named(compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True), own)
    return fused if fused is not None and fused.co_freevars == own.co_freevars else None


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


class _Fused(ast.NodeTransformer):
    """Puts the calls in, and leaves out what only led to them."""

    def __init__(
        self, places: dict[tuple[int, int, int | None], Attention], gone: set[tuple[int, int]]
    ) -> None:
        self._places = places
        self._gone = gone

    def visit(self, node: ast.AST) -> Any:
        """Return what stands in the place of a node."""
        if isinstance(node, ast.stmt) and (node.lineno, node.col_offset) in self._gone:
            return None
        if isinstance(node, ast.expr):
            key = (node.lineno, node.col_offset, node.end_col_offset)
            each = self._places.get(key)
            if each is not None and type(node) is type(each.product):
                call = ast.parse(f"{CALL}({each.arguments}){each.turn}", mode="eval").body
                for inner in ast.walk(call):
                    ast.copy_location(inner, node)
                return call
        return self.generic_visit(node)
