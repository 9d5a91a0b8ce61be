"""The activation of ram_disk and remote_loading: what is opened for reading below a folder is opened in its copy."""

from __future__ import annotations

import builtins
import functools
import io
import os
from collections.abc import Callable
from typing import Any, Protocol

from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.shared_count import SharedCount
from hotloop.probe.activation.activation import Activation

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


class Copy(Protocol):
    """Of a folder."""

    @property
    def said(self) -> str:
        """What and where it is, for people."""

    def instead_of(self, name: Any) -> str | None:
        """Return the copy of a file; None: the original is to be opened."""


class RedirectedOpens(Activation):
    """Copies a folder, and stands where files are opened.

    Args:
        folder: to be copied.
        copied: copies it, or raises CannotKeep.
    """

    def __init__(self, folder: str, copied: Callable[[], Copy]) -> None:
        self._folder = folder
        self._copied = copied
        self._staged: Copy | None = None
        self._reason = f"{folder} was not copied yet"
        self._num_opened = SharedCount()

    def on_torch(self) -> None:
        """Copy the files."""
        try:
            self._staged = self._copied()
        except CannotKeep as refusal:
            self._reason = str(refusal)
            return
        for module, name in ((builtins, "open"), (io, "open")):
            setattr(module, name, self._opening(getattr(module, name)))
        system: Any = os
        system.open = self._opening_descriptor(os.open)

    def _opening(self, original: Any) -> Any:
        @functools.wraps(original)
        def opened(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
            reads = isinstance(mode, str) and not set(mode) & set("wax+")
            return original(self._place(file) if reads else file, mode, *args, **kwargs)

        return opened

    def _opening_descriptor(self, original: Any) -> Any:
        @functools.wraps(original)
        def opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
            plain = not flags & _WRITES and kwargs.get("dir_fd") is None
            return original(self._place(path) if plain else path, flags, *args, **kwargs)

        return opened

    def _place(self, file: Any) -> Any:
        try:
            place = self._staged.instead_of(file) if self._staged is not None else None
        except Exception:  # the program's own open says what is wrong with such a name
            return file
        if place is None:
            return file
        self._num_opened.add()
        return place

    def effect(self) -> tuple[bool, str]:
        """Return whether files were opened in the copy, by this process or its workers."""
        if self._staged is None:
            return False, self._reason
        num = self._num_opened.value
        if not num:
            return False, f"nothing below {self._folder} was opened for reading by Python"
        return True, f"{num} opens went to {self._staged.said}"
