"""The line of the user's program that a call came from."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from functools import lru_cache
from types import CodeType, FrameType

from hotloop.probe.record.console_script import started_package

_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
"""Of any environment: one may be linked to another by a `.pth` file."""
_NAMED = ("stdlib", "platstdlib", "purelib", "platlib")
_OWN = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep


def installed_in(folders: Iterable[str]) -> set[str]:
    """Return those that packages were installed in: `pip install --target` names no folder site-packages."""
    found = set()
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:  # a zip file, or nothing
            continue
        if any(name.endswith(".dist-info") for name in names):
            found.add(folder)
    return found


def _library_folders() -> tuple[str, ...]:
    # The folder of the user's script is not on the path yet: what lies in it is the user's.
    folders = {sysconfig.get_paths()[name] for name in _NAMED} | {site.getusersitepackages()}
    return tuple(folder + os.sep for folder in folders | installed_in(sys.path))


_LIBRARIES = _library_folders()


def user_line(depth: int = 1) -> tuple[str | None, int | None]:
    """Return path and line of the innermost frame that is neither a library's nor ours, or (None, None)."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and depth > 1:
        frame, depth = frame.f_back, depth - 1
    while frame is not None:
        if is_users(frame.f_code):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None, None


def is_ours(code: CodeType) -> bool:
    """Whether a function is the probe's."""
    return code.co_filename.startswith(_OWN)


@lru_cache(maxsize=4096)  # prefixes of some thousand functions are compared once, not at every call
def is_users(code: CodeType) -> bool:
    """Whether a function is the user's: neither a library's nor ours."""
    return is_users_file(code.co_filename)


def is_users_file(path: str) -> bool:
    """Whether a file is the user's: neither a library's nor ours."""
    return not (path.startswith((_OWN, "<frozen")) or is_library(path))


def is_library(path: str) -> bool:
    """Whether a file belongs to the standard library or to an installed package.

    Of a command of an installed package the package is the program, and the script that starts it a library's.
    """
    script, package = _started(sys.argv[0] if sys.argv else "")
    if package is not None and (path == script or path.startswith(package)):
        return path == script and not path.startswith(package)
    return path.startswith(_LIBRARIES) or any(part in path for part in _PACKAGES)


@lru_cache(maxsize=1)
def _started(script: str) -> tuple[str, str | None]:
    return script, started_package(script) if script else None


def user_stack(depth: int = 8) -> tuple[tuple[str, int], ...]:
    """Return the innermost frames of the user's, as path and line, at most so many."""
    frame: FrameType | None = sys._getframe(1)
    found: list[tuple[str, int]] = []
    while frame is not None and len(found) < depth:
        if is_users(frame.f_code):
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)
