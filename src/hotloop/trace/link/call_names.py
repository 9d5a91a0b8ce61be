"""What calls of the CUDA, HIP and XPU runtimes and drivers do to the host, by name."""

import re
from enum import IntEnum


class CallClass(IntEnum):
    """Why a call may hold the host up."""

    OTHER = 0
    SYNC = 1
    """Waits until work on the device is done."""
    COPY = 2
    """Moves memory; blocks where the host's side is not pinned."""
    ALLOCATION = 3
    LAUNCH = 4
    WAIT = 5
    """Makes a stream wait for an event; the host goes on."""


_RULES = (
    (
        CallClass.SYNC,
        re.compile(
            r"Synchronize(?:WithFlags)?(?:_|$)|^hipMemcpyWithStream|^(?:cuda|hip)Memcpy(?:2D|3D)?(?:_|$)"
        ),
    ),
    (CallClass.WAIT, re.compile(r"StreamWaitEvent")),
    (CallClass.COPY, re.compile(r"Memcpy")),
    (
        CallClass.ALLOCATION,
        re.compile(
            r"Malloc|Free(?!ze)|HostAlloc|HostRegister|HostUnregister|MemCreate|MemMap|MemUnmap|MemRelease"
        ),
    ),
    (CallClass.LAUNCH, re.compile(r"Launch|GraphExec|Memset")),
)


def classify_call(name: str) -> CallClass:
    """The class of a runtime or driver call: `cudaStreamSynchronize` waits, `hipLaunchKernel` launches."""
    for found, pattern in _RULES:
        if pattern.search(name):
            return found
    return CallClass.OTHER
