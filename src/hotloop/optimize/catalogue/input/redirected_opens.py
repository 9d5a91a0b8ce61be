"""The activation of ram_disk: what the program opens for reading below a folder is opened in its copy."""

from __future__ import annotations

import builtins
import functools
import io
import os
from typing import Any

from hotloop.optimize.catalogue.input.shared_count import SharedCount
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.staged_folder import StagedFolder
from hotloop.probe.activation.activation import Activation

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


class RedirectedOpens(Activation):
    """Copies a folder, and stands where files are opened.

    Args:
        folder: to be copied.
        max_share: of the free memory that the copy may take.
    """

    def __init__(self, folder: str, max_share: float) -> None:
        self._folder = folder
        self._max_share = max_share
        self._staged: StagedFolder | None = None
        self._reason = f"{folder} was not copied yet"
        self._num_opened = SharedCount()

    def on_torch(self) -> None:
        """Copy the files."""
        try:
            self._staged = StagedFolder(self._folder, self._max_share)
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
        return (
            True,
            f"{num} opens went to a copy of {self._folder} in memory, {self._staged.num_bytes / 1e6:.3g} MB",
        )
