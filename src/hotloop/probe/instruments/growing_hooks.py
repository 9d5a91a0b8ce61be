"""Hooks of modules and tensors that pile up: registered with every step, and never removed."""

from __future__ import annotations

import contextlib
import functools
import sys
from types import CodeType
from typing import Any

from hotloop.probe.frameless import Around
from hotloop.probe.instruments.frames import Frames, Line
from hotloop.probe.instruments.replaced import Replaced

MAX_REGISTERED = 100_000
_TABLES = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
)
_GROWS = 0.5
"""Hooks a step; fewer come now and then."""


class GrowingHooks:
    """Counts hooks by their code, at the beginning and at the end of a window, and notes who registers them.

    Args:
        frames: tells the user's lines.
    """

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._replaced = Replaced(frames)
        self._before: dict[CodeType, int] = {}
        self._registered: list[tuple[Any, int, Line]] = []

    def start(self, objects: list[Any]) -> None:
        """Count the hooks of all modules among these objects; watch who registers more."""
        from torch.utils.hooks import RemovableHandle

        self._before = _counted(objects)
        original = RemovableHandle.__init__

        def made(handle: Any, *args: Any, **kwargs: Any) -> None:
            original(handle, *args, **kwargs)
            with contextlib.suppress(Exception):  # the probe fails open
                self._note(handle)

        self._replaced.set(RemovableHandle, "__init__", Around(original, made))

    def remove(self) -> None:
        """Put everything back."""
        self._replaced.put_back()

    def grown(self, objects: list[Any], steps: int) -> list[dict[str, Any]]:
        """Return the hooks that there are more of, those that gained most first."""
        self.remove()
        lines = self._lines()
        found = []
        for code, count in _counted(objects).items():
            per_step = (count - self._before.get(code, 0)) / max(1, steps)
            if per_step >= _GROWS and code in lines:
                found.append(
                    {**lines[code]._asdict(), **_described(code), "num": count, "per_step": per_step}
                )
        self._registered = []
        return sorted(found, key=lambda row: -float(row["per_step"]))

    def _note(self, handle: Any) -> None:
        caller = self._frames.caller(sys._getframe(2))
        if caller is not None and len(self._registered) < MAX_REGISTERED:
            self._registered.append((handle.hooks_dict_ref, handle.id, caller.at))

    def _lines(self) -> dict[CodeType, Line]:
        """Return where hooks were registered that are still there, by their code."""
        found = {}
        for table, number, line in self._registered:
            code = _code((table() or {}).get(number))
            if code is not None:
                found[code] = line
        return found


def _counted(objects: list[Any]) -> dict[CodeType, int]:
    from torch import nn

    counts: dict[CodeType, int] = {}
    for module in objects:
        if issubclass(type(module), nn.Module):
            own = vars(module)
            tables = [own.get(name) for name in _TABLES]
            tables += [
                each._backward_hooks for each in (own.get("_parameters") or {}).values() if each is not None
            ]
            for hook in [hook for table in tables if table for hook in list(table.values())]:
                code = _code(hook)
                if code is not None:
                    counts[code] = counts.get(code, 0) + 1
    return counts


def _code(hook: Any) -> CodeType | None:
    while isinstance(hook, functools.partial):
        hook = hook.func
    function = getattr(hook, "__func__", hook)
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _described(code: CodeType) -> dict[str, Any]:
    last = max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    return {
        "hook": code.co_name,
        "hook_path": code.co_filename,
        "hook_line": code.co_firstlineno,
        "hook_last": last,
    }
