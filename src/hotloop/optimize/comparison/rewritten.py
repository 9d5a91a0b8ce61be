"""Functions of a running model whose source writes out what torch has one call for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from hotloop.optimize.comparison.compared_swap import ComparedSwap
from hotloop.optimize.comparison.exchange import Exchange
from hotloop.optimize.comparison.function_code import (
    OURS,
    Place,
    changed_code,
    functions_of,
    source_of,
    why_unchanged,
)

CALL = OURS
"""By this and its own name a changed function knows what it calls; it stands in the globals of the user's module."""
COUNTED_CALLS = 64
"""Calls that are counted; then the functions call torch's own, with no frame of ours between."""


@dataclass(frozen=True)
class Change:
    """What becomes of a function.

    Attributes:
        function: its qualified name.
        line: where what is changed begins.
        calls: functions of torch.nn.functional that it calls then.
        expressions: what stands in the place of an expression.
        gone: line and column of statements that are left out.
        helpers: other methods that it does the work of from then on; a class that has its own of them is another thing.
    """

    function: str
    line: int
    calls: frozenset[str]
    expressions: Mapping[Place, str]
    gone: frozenset[tuple[int, int]] = frozenset()
    helpers: frozenset[str] = frozenset()


class RewrittenSwap(ComparedSwap):
    """Exchanges the code of functions, each in all models that share it."""

    def __init__(self, *, at_once: bool) -> None:
        super().__init__(at_once=at_once)
        self._known: dict[int, _Rewritten] = {}

    @abstractmethod
    def changes(self, source: str) -> Sequence[Change]:
        """Return what becomes of the functions in the text of a file."""

    def found(self, root: Any) -> tuple[Sequence[Exchange], Sequence[str]]:
        """Return the functions, and why others are left."""
        found: dict[int, _Rewritten] = {}
        left: dict[str, None] = {}
        read: dict[str, Mapping[str, Change]] = {}
        for module in root.modules():
            for function in functions_of(type(module)):
                if id(function) not in found:
                    known = self._known.get(id(function)) or self._rewritten(type(module), function, read)
                    if known is None:
                        continue
                    if isinstance(known, str):
                        left[known] = None
                        continue
                    self._known[id(function)] = found[id(function)] = known
                    known.modules = []
                found[id(function)].modules.append(module)
        return list(found.values()), list(left)

    def _rewritten(
        self, cls: type, function: FunctionType, read: dict[str, Mapping[str, Change]]
    ) -> _Rewritten | str | None:
        """Return a function's exchange, or why it has none; None: there is nothing to exchange in it."""
        change = self._change(function, read)
        if change is None:
            return None
        if change.helpers and _other_helpers(cls, function, change.helpers):
            return f"{_place(change)}: a class that derives from it has methods of its own"
        code = changed_code(function, change.expressions, change.gone)
        if code is None:
            return f"{_place(change)}: {why_unchanged(function)}"
        return _Rewritten(function, change, code)

    def _change(self, function: FunctionType, read: dict[str, Mapping[str, Change]]) -> Change | None:
        path = function.__code__.co_filename
        if path not in read:
            read[path] = {each.function: each for each in self.changes(source_of(function))}
        return read[path].get(function.__qualname__)


class _Rewritten(Exchange):
    """A function, and its code with the calls."""

    def __init__(self, function: FunctionType, change: Change, code: CodeType) -> None:
        super().__init__(_place(change))
        self._function = function
        self._own = function.__code__
        self._code = code
        self._names = sorted(change.calls)

    def put(self, on: bool) -> None:
        """Let the function call torch's own, or run its own code again."""
        if on:
            for name in self._names:
                counts = self.num_calls < COUNTED_CALLS
                self._function.__globals__[CALL + name] = self._counted(name) if counts else torchs(name)
        self._function.__code__ = self._code if on else self._own

    def _counted(self, name: str) -> Any:
        plain = torchs(name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.num_calls += 1
            if self.num_calls >= COUNTED_CALLS:
                self._function.__globals__[CALL + name] = plain
            return plain(*args, **kwargs)

        return counted


def _other_helpers(cls: type, function: FunctionType, helpers: AbstractSet[str]) -> bool:
    """Whether a class below the one that a method stands in has its own of what the method calls."""
    owner = next((base for base in cls.__mro__ if vars(base).get(function.__name__) is function), cls)
    below: list[type] = owner.__subclasses__()
    while below:
        one = below.pop()
        if function.__name__ in vars(one):
            continue
        if helpers & vars(one).keys():
            return True
        below += one.__subclasses__()
    return False


def torchs(name: str) -> Any:
    """Return a function of torch.nn.functional."""
    from torch.nn import functional

    return getattr(functional, name)


def _place(change: Change) -> str:
    return f"{change.function} (line {change.line})"
