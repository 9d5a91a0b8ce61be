"""Whether an exception, or the end of a log, says that memory ran out, and how much was asked for.

The last line of a log does not say it: CUDA adds two lines of advice after its error, launchers add a table of failed
ranks, and Python's own shut-down may fail once more. And the words are not torch's alone: cuBLAS and cuDNN allocate
their work space by themselves, and name their own status.
"""

from __future__ import annotations

import re
import traceback

from hotloop.probe.memory_failure.room import host_room

STEM = "out-of-memory"
NUM_LINES = 200
"""Of a log that are searched: a traceback of a deep model, once for each of eight ranks."""
TIGHT_BYTES = 64 << 20
"""A thread's stack takes 8 MiB, a primitive of oneDNN the size of its weights."""

_WORDS = re.compile(
    r"""
      ^[\w.]*MemoryError\b
    | (?:torch(?:\.cuda)?\.)?OutOfMemoryError\b
    | ^[\w.]*(?:Error|Exception):\ (?:[^\n]*\b)?out\ of\ memory\b
    | DefaultCPUAllocator:\ can't\ allocate | not\ enough\ memory:\ you\ tried\ to\ allocate
    | std::bad_alloc | Cannot\ allocate\ memory | Unable\ to\ allocate\ [\d.]+\ [KMGT]?i?B
    | \b(?:CUDA|HIP|XPU|MPS)\b[^\n]{0,60}\bout\ of\ memory\b            # torch, "CUDA error: ...", Triton "[CUDA]: ..."
    | \b(?:cuda|hip)ErrorOutOfMemory\b | \b(?:cuda|hip)ErrorMemoryAllocation\b
    | \bC?U?D?A?_?ERROR_OUT_OF_MEMORY\b
    | Cuda\ failure[^\n]{0,40}out\ of\ memory                           # NCCL
    | \b(?:CUBLAS|CUBLASLT|CUDNN|CUSOLVER|CUSPARSE|CUFFT|HIPBLAS|MIOPEN)_?(?:STATUS_)?ALLOC_FAILED\b
    | \bCUDNN_STATUS_INTERNAL_ERROR_(?:DEVICE|HOST)_ALLOCATION_FAILED\b
    | \bmiopenStatusAllocFailed\b | \brocblas_status_memory_error\b
    | CUBLAS_STATUS_NOT_INITIALIZED                                     # its handle found no room: cublasCreate
    | \bout\ of\ shared\ memory\b                                       # a loader worker's bus error
    | </torch_[^\n]*No\ space\ left\ on\ device                         # /dev/shm
    """,
    re.VERBOSE | re.MULTILINE,
)
_PERHAPS = re.compile(r"can't start new thread|could not create a (?:primitive|memory)")
"""Also a limit of processes, or a case that oneDNN does not have: only where memory is short."""
_CHILD_KILLED = re.compile(
    r"killed by signal: Killed|\bSIGKILL\b|process pool was terminated abruptly|exitcode\s*: -9\b"
)
_SHARED = re.compile(r"shared memory|</torch_")
_INDEX = re.compile(r"\bGPU (\d+)(?: has a total capacity|; )")
_UNITS = {"bytes": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_ASKED = re.compile(
    r"(?:tried to allocate|unable to allocate)\s+([\d.]+)\s*(bytes|B|KiB|MiB|GiB|TiB)", re.IGNORECASE
)


def says_out_of_memory(error: BaseException | None) -> BaseException | None:
    """Return the exception of a chain that says so; None: none does."""
    for _ in range(20):
        if error is None:
            return None
        if isinstance(error, MemoryError):
            return error
        text = _text(error)
        if says_so(text) or (_PERHAPS.search(text) and _is_short()):
            return error
        error = error.__cause__ or error.__context__
    return None


def says_so(text: str) -> bool:
    """Whether the words of an exception, or the last `NUM_LINES` lines of a log, say that memory ran out."""
    return _WORDS.search(text) is not None


def says_child_was_killed(error: BaseException | None) -> bool:
    """Whether an exception says that signal 9 ended a process that this one had started: a worker, a rank."""
    return error is not None and _CHILD_KILLED.search(_text(error)) is not None


def is_of_shared_memory(text: str) -> bool:
    """Whether it was what processes share that ran out."""
    return _SHARED.search(text) is not None


def device_index(text: str) -> int | None:
    """Return the device that torch names; None: it names none. A program may use another than the current one."""
    found = _INDEX.search(text)
    return int(found.group(1)) if found else None


def _text(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error))


def _is_short() -> bool:
    free = host_room()["free_bytes"]
    return free is not None and free < TIGHT_BYTES


def asked_bytes(text: str) -> int | None:
    """Return how much was asked for, by the words of torch or NumPy; None: they do not say."""
    found = _ASKED.search(text)
    return round(float(found[1]) * _UNITS[_unit(found[2])]) if found else None


def _unit(word: str) -> str:
    return next(unit for unit in _UNITS if unit.lower() == word.lower())
