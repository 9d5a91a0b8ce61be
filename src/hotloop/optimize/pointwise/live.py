"""The functions of a running model that write an activation function out, with torch's own in its place."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from hotloop.optimize.comparison.compared_swap import ComparedSwap
from hotloop.optimize.comparison.exchange import Exchange
from hotloop.optimize.comparison.function_code import changed_code, functions_of, place_of, source_of
from hotloop.optimize.pointwise.pattern import WrittenOut, written_out

CALL = "_hotloop_"
"""By this and its own name a changed function knows what it calls; it stands in the globals of the user's module."""
COUNTED_CALLS = 64
"""Calls that are counted; then the functions call torch's own, with no frame of ours between."""


class PointwiseSwap(ComparedSwap):
    """Exchanges the code of functions that write an activation function out."""

    nothing = "no training forward ran an activation function that is written out"

    def found(self, root: Any) -> tuple[Sequence[Exchange], Sequence[str]]:
        """Return the functions, and why others are left."""
        found: dict[int, _Rewritten] = {}
        left: dict[str, None] = {}
        sources: dict[str, list[WrittenOut]] = {}
        for module in root.modules():
            for function in functions_of(type(module)):
                if id(function) not in found:
                    here = _here(function, sources)
                    if not here:
                        continue
                    code = changed_code(function, {place_of(each.expression): _call(each) for each in here})
                    if code is None:
                        left[f"{_place(function, here)}: the file has changed since it was loaded"] = None
                        continue
                    found[id(function)] = _Rewritten(function, here, code)
                found[id(function)].modules.append(module)
        return list(found.values()), list(left)


class _Rewritten(Exchange):
    """A function, and its code with the calls."""

    def __init__(self, function: FunctionType, here: Sequence[WrittenOut], code: CodeType) -> None:
        super().__init__(_place(function, here))
        self._function = function
        self._own = function.__code__
        self._code = code
        self._names = sorted({each.formula.function.name for each in here})

    def put(self, on: bool) -> None:
        """Let the function call torch's own, or run its own code again."""
        if on:
            for name in self._names:
                counts = self.num_calls < COUNTED_CALLS
                self._function.__globals__[CALL + name] = self._counted(name) if counts else _torchs(name)
        self._function.__code__ = self._code if on else self._own

    def _counted(self, name: str) -> Any:
        plain = _torchs(name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.num_calls += 1
            if self.num_calls >= COUNTED_CALLS:
                self._function.__globals__[CALL + name] = plain
            return plain(*args, **kwargs)

        return counted


def _torchs(name: str) -> Any:
    from torch.nn import functional

    return getattr(functional, name)


def _here(function: FunctionType, sources: dict[str, list[WrittenOut]]) -> list[WrittenOut]:
    path = function.__code__.co_filename
    if path not in sources:
        sources[path] = written_out(source_of(function))
    return [each for each in sources[path] if each.function == function.__qualname__]


def _call(found: WrittenOut) -> str:
    return f"{CALL}{found.formula.function.name}({found.arguments})"


def _place(function: FunctionType, here: Sequence[WrittenOut]) -> str:
    return f"{function.__qualname__} (line {here[0].line})"
