"""Landlock: a process gives up writing anywhere but in some folders, children and C++ code included (Linux 5.13).

It needs no namespace and no privilege, so it works in containers where overlays are not permitted: what the guard
inside Python does not redirect fails with `EACCES` instead of reaching the user's files.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PR_SET_NO_NEW_PRIVS = 38
_WRITE_FILE = 1 << 1
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
"""From REMOVE_DIR to MAKE_SYM, in the kernel's `linux/landlock.h`."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
DENIES_TRUNCATION = 3
"""The version from which no file can be emptied (Linux 6.2)."""
_FILE_RIGHTS = _WRITE_FILE | _TRUNCATE


DENIES_CONNECTIONS = 4
"""The version from which no TCP port can be bound or connected to (Linux 6.7)."""
_BIND_TCP, _CONNECT_TCP = 1, 2
_SCOPES_SIGNALS, _SCOPE_SIGNAL = 6, 2
"""From this version (Linux 6.12) a process can be kept from signalling those that are not under the same rules."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def version() -> int:
    """Return the version of Landlock here; 0: there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def write_only_to(folders: Sequence[str], *, connected: bool = True) -> None:
    """Take from this process, and all it starts, the right to change files and signal processes elsewhere.

    Args:
        folders: where it may write.
        connected: whether it keeps the right to TCP connections.

    Raises:
        OSError: it is not permitted.
    """
    found = version()
    handled = _WRITE_FILE | _REMOVE_AND_MAKE
    handled |= (_REFER if found >= 2 else 0) | (_TRUNCATE if found >= DENIES_TRUNCATION else 0)
    denied_net = 0 if connected or found < DENIES_CONNECTIONS else _BIND_TCP | _CONNECT_TCP
    asked = _Ruleset(handled, denied_net, _SCOPE_SIGNAL if found >= _SCOPES_SIGNALS else 0)
    ruleset = _checked(
        _libc().syscall(
            _CREATE_RULESET, ctypes.byref(asked), ctypes.c_size_t(ctypes.sizeof(asked)), ctypes.c_uint32(0)
        )
    )
    try:
        for folder in folders:
            with contextlib.suppress(FileNotFoundError, PermissionError):
                _allow(ruleset, folder, handled)
        _checked(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(_libc().syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, handled: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = handled if os.path.isdir(path) else handled & _FILE_RIGHTS
        rule = _PathRule(rights, descriptor)
        _checked(
            _libc().syscall(
                _ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0)
            )
        )
    finally:
        os.close(descriptor)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"landlock: {os.strerror(number)}")
    return int(result)
