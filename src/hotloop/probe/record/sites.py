"""Where the user's code calls what matters: each place once, looked at in the first steps alone.

A look costs a walk up the stack (2 us at ten frames); after so many of a kind there are no more.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

from hotloop.probe.record.call_site import is_ours, is_users

LOOKS = 256
"""Of each kind; programs of many loaders or losses have a dozen call sites."""
MAX_PLACES = 8
"""User frames that are kept of one call: the loop, the functions around it, `main`."""
MAX_FRAMES = 100
_At = tuple[CodeType, int]
"""Code and instruction: the same for each pass through one expression."""
Walk = tuple[tuple[_At, ...], int, bool]
"""The user's frames, innermost first; how many of them are the constructed object's own `__init__`; whether no library
stands between the user's call and the constructor."""


class CallSites:
    """The places from which a program was seen to call things.

    Args:
        wanted: whether anybody reads them.
    """

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted
        self._looks: Counter[str] = Counter()
        self._found: dict[tuple[str, int, tuple[_At, ...]], dict[str, Any]] = {}
        self.made: weakref.WeakKeyDictionary[Any, Walk] = weakref.WeakKeyDictionary()
        """Where each module was constructed, until it is known which of them are roots."""
        self.on_close: list[Callable[[], None]] = []
        """Takes away what was put into torch to see calls."""

    def open(self, kind: str) -> bool:
        """Whether calls of this kind are still looked at."""
        return self.wanted and self._looks[kind] < LOOKS

    def close(self) -> None:
        """Leave torch as it was; what the hook points see anyhow is still kept."""
        while self.on_close:
            self.on_close.pop()()
        self.made.clear()

    def note(
        self,
        kind: str,
        callee: str,
        *,
        slot: int = 0,
        made: Any = None,
        arguments: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any] | None:
        """Keep from where the user's code calls, if that is new; return its facts.

        Args:
            kind: a value of `hotloop.model.sites.SiteKind`.
            callee: qualified name of what is called.
            slot: number of the object it is called on.
            made: the object under construction; frames of its own `__init__` are counted apart.
            arguments: what a forward was given.
        """
        if not self.open(kind):
            return None
        self._looks[kind] += 1
        return self.keep(kind, callee, walk(sys._getframe(1), made), slot=slot, arguments=arguments)

    def keep(
        self,
        kind: str,
        callee: str,
        walked: Walk,
        *,
        slot: int = 0,
        arguments: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any] | None:
        """Keep a walk up the stack that was made earlier; return the facts of the site."""
        ats, num_own, direct = walked
        if not ats:
            return None
        facts = {"kind": kind, "slot": slot, "callee": callee, "num_own": num_own, "direct": direct}
        return self._found.setdefault((kind, slot, ats), {**facts, "arguments": list(arguments)})

    def root(self, module: Any, slot: int) -> None:
        """Keep where a root module was constructed."""
        if module in self.made:
            cls = type(module)
            facts = self.keep("model", f"{cls.__module__}.{cls.__qualname__}", self.made[module], slot=slot)
            if facts is not None:
                facts["overrides"] = _overrides(module)

    def written(self) -> list[dict[str, Any]]:
        """Return the sites for JSON."""
        return [
            {**facts, "places": [_place(*at) for at in ats]} for (_, _, ats), facts in self._found.items()
        ]


def walk(frame: FrameType | None, made: Any = None) -> Walk:
    """Return the user's frames, seen from the constructor of `made`, if something is being made."""
    ats: list[_At] = []
    num_own = 0
    direct = True
    inside = made is not None
    for _ in range(MAX_FRAMES):
        if frame is None or len(ats) == MAX_PLACES:
            break
        own = inside and frame.f_code.co_name == "__init__" and _first(frame) is made
        if is_users(frame.f_code):
            if own:
                num_own = len(ats) + 1
            ats.append((frame.f_code, frame.f_lasti))
        elif not own and len(ats) == num_own and not is_ours(frame.f_code):
            direct = frame.f_code.co_name in _PASSED_THROUGH and direct
        frame = frame.f_back
    return tuple(ats), num_own, direct


_PASSED_THROUGH = (
    "__setattr__",
    "register_parameter",
    "add_module",
    "register_module",
    "__call__",
    "insert_env_defaults",
)
"""Frames of torch through which a module comes to be registered, Python's way to a metaclass, and what Lightning
decorates `Trainer.__init__` with."""


def _first(frame: FrameType) -> Any:
    """Return a method's `self`."""
    names = frame.f_code.co_varnames
    return frame.f_locals.get(names[0]) if names else None


def _place(code: CodeType, instruction: int) -> dict[str, Any]:
    name = getattr(code, "co_qualname", code.co_name)  # Python 3.11 and newer
    place = {"path": os.path.abspath(code.co_filename), "function": name}
    if hasattr(code, "co_positions"):
        line, end_line, column, end_column = list(code.co_positions())[instruction // 2]
        if None not in (line, end_line, column, end_column):
            return {**place, "line": line, "column": column, "end_line": end_line, "end_column": end_column}
    return {**place, "line": _line(code, instruction)}


def _line(code: CodeType, instruction: int) -> int:
    lines = (line for first, last, line in code.co_lines() if first <= instruction < last and line)
    return next(lines, code.co_firstlineno)


def _overrides(module: Any) -> list[str]:
    """Return the methods that rewrites call: `compile` is called on the model or on blocks of it, `to` on the model."""
    parts = {type(part) for part in module.modules()}
    called = {"to": {type(module)}, "compile": parts}
    return [name for name, classes in called.items() if any(_has_own(cls, name) for cls in classes)]


def _has_own(cls: type, name: str) -> bool:
    from torch import nn

    return getattr(cls, name, None) is not getattr(nn.Module, name, None)
