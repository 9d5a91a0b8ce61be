"""What an event is, whatever a version of the profiler called it."""

import re
from enum import IntEnum


class Kind(IntEnum):
    """The kinds of events that matter; the rest is counted and dropped."""

    OTHER = 0
    OPERATOR = 1
    ANNOTATION = 2
    PYTHON = 3
    CALL = 4
    """A call of the device's runtime or driver on a host thread."""
    OVERHEAD = 5
    SPAN = 6
    """The profiler's own window."""
    KERNEL = 7
    MEMCPY = 8
    MEMSET = 9
    SYNC = 10
    """What a stream waited for (`cuda_sync`)."""
    DEVICE_ANNOTATION = 11
    MEMORY = 12
    """Allocation or release of memory."""
    META = 13
    FLOW = 14
    UNPAIRED = 15
    """Begin and end events (`B`, `E`): no profiler of PyTorch writes them."""


_HOST = (Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON, Kind.CALL, Kind.OVERHEAD)
_DEVICE = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
HOST_KINDS = frozenset(_HOST)
DEVICE_KINDS = frozenset(_DEVICE)

_CATEGORIES = {
    "operator": Kind.OPERATOR,
    "cpu_op": Kind.OPERATOR,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON,
    "overhead": Kind.OVERHEAD,
    "trace": Kind.SPAN,
    "kernel": Kind.KERNEL,
    "memcpy": Kind.MEMCPY,
    "gpu_memcpy": Kind.MEMCPY,
    "memset": Kind.MEMSET,
    "gpu_memset": Kind.MEMSET,
    "cuda_sync": Kind.SYNC,
    "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
}
_CALLS = re.compile(r"^(?:[a-z0-9]+_)?(?:runtime|driver)$")
"""runtime, cuda_runtime, cuda_driver, hip_runtime, xpu_runtime, privateuse1_driver and their kin."""


def kind_of(phase: str, category: str | None) -> Kind:
    """The kind of an event with this phase letter and category."""
    if phase == "X":
        category = (category or "").lower()
        found = _CATEGORIES.get(category)
        if found is not None:
            return found
        return Kind.CALL if _CALLS.match(category) else Kind.OTHER
    if phase in {"i", "I"}:
        return Kind.MEMORY
    if phase == "M":
        return Kind.META
    if phase in {"s", "t", "f"}:
        return Kind.FLOW
    return Kind.UNPAIRED if phase in {"B", "E"} else Kind.OTHER


_COMMUNICATION = re.compile(
    r"nccl|rccl|cross_device_reduce|custom_?all_?reduce|all_?reduce_?(?:one|two)_?(?:stage|shot)|allreduce_fusion"
    r"|(?:one|two)_?shot_?all_?reduce|multimem_(?:all|one)|nvshmem|deep_ep|(?:intranode|internode)::(?:dispatch|combine)",
    re.IGNORECASE,
)
"""NCCL before and after 2.19 (`ncclKernel_`, `ncclDevKernel_`), RCCL (`rcclGenericKernel`, `ncclDevKernel_Generic`),
and the all-reduce kernels of vLLM, SGLang, AITER, TensorRT-LLM and torch's symmetric memory."""


def is_communication(kernel: str) -> bool:
    """Whether a kernel of this name moves data between ranks."""
    return _COMMUNICATION.search(kernel) is not None
