"""Errors in a program's output that an isolation causes, and the option that avoids each."""

from __future__ import annotations

import errno
import os
import re
import shlex

from hotloop.launch.isolation.values import Isolation

_REFUSED = (
    os.strerror(errno.ECONNREFUSED),
    os.strerror(errno.ENETUNREACH),
    "Temporary failure in name resolution",
)


def sign_of_isolation(log: str, isolation: Isolation) -> str | None:
    """Return what of a run's isolation its output shows as the likely cause, and what to type; None: nothing does.

    Args:
        log: the end of its output.
        isolation: of the run.
    """
    if isolation.covered and os.strerror(errno.EOVERFLOW) in log:
        named = re.search(rf"{os.strerror(errno.EOVERFLOW)}: '(/[^']*)/[^/']+'", log)
        return (
            "a write failed in hotloop's overlay, in a folder of another owner or group that was not foreseen "
            f"({os.strerror(errno.EOVERFLOW)}): the failure is hotloop's. Let it write there: --writable "
            f"{shlex.quote(named[1]) if named else 'FOLDER'}"
        )
    if isolation.covered and os.strerror(errno.EROFS) in log:
        return (
            f"a write failed where hotloop's isolation is read-only ({os.strerror(errno.EROFS)}). If the program may "
            "really write there: --writable FOLDER"
        )
    if isolation.denied and os.strerror(errno.EACCES) in log:
        return (
            "a write was denied that the guard inside Python could not redirect to scratch "
            f"({os.strerror(errno.EACCES)}). If the program may really write there: --writable FOLDER"
        )
    if isolation.network and any(text in log for text in _REFUSED):
        return (
            "it could not connect, and measured runs have a network of their own, in which no other machine and no "
            "service of this machine can be reached. If the program needs one: --network, or HOTLOOP_NETWORK=1"
        )
    return None
