"""Whether a program ran out of memory, by how it ended and by the end of its log.

The last line does not say it: CUDA adds two lines of advice after its error, launchers add a table of failed ranks,
and Python's own shut-down may fail once more. And the words are not torch's alone: cuBLAS and cuDNN allocate their
work space by themselves, and name their own status.
"""

from __future__ import annotations

import re

NUM_LINES = 200
"""Of the log that are searched: a traceback of a deep model, once for each of eight ranks."""
KILLED = 137
"""Exit code of a process killed by signal 9: what the kernel does to the largest one when memory is short."""
_WORDS = re.compile(
    r"""
      ^[\w.]*MemoryError\b
    | (?:torch(?:\.cuda)?\.)?OutOfMemoryError\b
    | DefaultCPUAllocator:\ can't\ allocate | not\ enough\ memory:\ you\ tried\ to\ allocate
    | std::bad_alloc | Cannot\ allocate\ memory
    | \b(?:CUDA|HIP|XPU|MPS)\b[^\n]{0,60}\bout\ of\ memory\b            # torch, "CUDA error: ...", Triton "[CUDA]: ..."
    | \b(?:cuda|hip)ErrorOutOfMemory\b | \b(?:cuda|hip)ErrorMemoryAllocation\b
    | \bC?U?D?A?_?ERROR_OUT_OF_MEMORY\b
    | Cuda\ failure[^\n]{0,40}out\ of\ memory                           # NCCL
    | \b(?:CUBLAS|CUBLASLT|CUDNN|CUSOLVER|CUSPARSE|CUFFT|HIPBLAS|MIOPEN)_?(?:STATUS_)?ALLOC_FAILED\b
    | \bCUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED\b
    | \bmiopenStatusAllocFailed\b | \brocblas_status_memory_error\b
    | CUBLAS_STATUS_NOT_INITIALIZED                                     # its handle found no room: cublasCreate
    """,
    re.VERBOSE | re.MULTILINE,
)


def ran_out_of_memory(code: int, log_end: str) -> bool:
    """Return whether a failed program ran out of memory.

    Args:
        code: how it ended; a signal as 128 + its number.
        log_end: the last `NUM_LINES` lines of its output.
    """
    return code == KILLED or _WORDS.search(log_end) is not None


_LIMITED = re.compile(
    r"Tried to allocate ([\d.]+) (\w+)\..*? of which ([\d.]+) (\w+) is free\..*? allowed;", re.DOTALL
)
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def refused_by_limit(log_end: str) -> bool:
    """Return whether torch refused an allocation for which the device had room: a limit of the process is reached.

    Args:
        log_end: the last `NUM_LINES` lines of its output.
    """
    found = _LIMITED.search(log_end)
    if found is None:
        return False
    asked, free = (float(found[at]) * _UNITS.get(found[at + 1], 0) for at in (1, 3))
    return asked <= free
