"""Attributes that an instrument replaces for the length of a window, and puts back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from hotloop.probe.instruments.frames import Frames

_ABSENT = object()


class Replaced:
    """What is replaced, to be put back in the opposite order.

    Args:
        frames: tells the user's modules.
    """

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._undo: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        """Whether something is replaced."""
        return bool(self._undo)

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute."""
        own = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self._undo.append(lambda: _put_back(owner, name, own))

    def set_item(self, items: Any, key: Any, value: Any) -> None:
        """Replace an item of a list or dictionary."""
        own = items[key]
        items[key] = value

        def put_back() -> None:
            if items[key] is value:
                items[key] = own

        self._undo.append(put_back)

    def set_imported(self, original: Any, value: Any) -> None:
        """Do the same to names that the user's modules have imported: `from torch import zeros`."""
        for module in self._user_modules():
            for name, held in list(vars(module).items()):
                if held is original:
                    self.set(module, name, value)

    def also(self, undo: Callable[[], None]) -> None:
        """Do this, too, when everything is put back."""
        self._undo.append(undo)

    def put_back(self) -> None:
        """Put everything back."""
        while self._undo:
            with contextlib.suppress(Exception):  # one that fails must not keep the others in place
                self._undo.pop()()

    def _user_modules(self) -> Iterator[ModuleType]:
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if isinstance(module, ModuleType) and path and self._frames.is_users(path):
                yield module


def _put_back(owner: Any, name: str, own: Any) -> None:
    if own is _ABSENT:
        delattr(owner, name)  # it is inherited
    else:
        setattr(owner, name, own)
