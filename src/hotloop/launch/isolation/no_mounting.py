"""Take from root's program the right to mount: what its isolation made read-only stays so.

Needs the standard library alone. In a user namespace nothing is to be taken: its mounts are locked by the kernel.

Source: capabilities(7), capset(2).
"""

from __future__ import annotations

import ctypes
import os

_PR_CAPBSET_DROP = 24
_SYS_ADMIN = 21
_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def never_mount() -> None:
    """Let this process and all that it becomes mount nothing (`CAP_SYS_ADMIN` is given up); not root: nothing is done.

    Raises:
        OSError: the kernel refuses.
    """
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(_VERSION_3, 0), (_Sets * 2)()
    _checked(libc.capget(ctypes.byref(header), sets))
    if not sets[0].effective & 1 << _SYS_ADMIN:
        return
    # What root executes gets all that is inheritable, and all that the bounding set permits.
    _checked(libc.prctl(_PR_CAPBSET_DROP, _SYS_ADMIN, 0, 0, 0))
    sets[0].inheritable &= ~(1 << _SYS_ADMIN)
    _checked(libc.capset(ctypes.byref(header), sets))


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
