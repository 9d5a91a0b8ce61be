"""Whether matrix units (tensor cores, matrix cores) could do an operator's work, and what is in the way."""

import re

from hotloop.trace.facts.work import Work
from hotloop.trace.read.trace import Trace

_TF32_KERNEL = re.compile(r"tf32|s1688gemm|_s1688_|1688tf32", re.IGNORECASE)


def uses_tf32(trace: Trace) -> bool:
    """Whether kernels ran with TF32: then float32 matmuls are on tensor cores already."""
    return any(_TF32_KERNEL.search(name) for name in trace.names)


def has_matrix_units(trace: Trace) -> bool:
    """Volta (7.0) and later; AMD's data-centre parts report 9.x and have them as well."""
    return any(device.major is not None and device.major >= 7 for device in trace.metadata.devices)


def tensor_core_note(work: Work, tf32: bool) -> str | None:
    """What keeps this work off the matrix units; None: nothing that is seen in its types and sizes."""
    if work.kind not in {"gemm", "convolution", "attention"}:
        return None
    if work.dtype == "float" and not tf32:
        return "fp32"
    if work.dtype == "double":
        return "fp64"
    if work.dtype in {"c10::Half", "c10::BFloat16"}:
        # cuBLAS and cuDNN: 16-byte alignment, so multiples of 8 for 2-byte types (NVIDIA matmul guide).
        odd = [size for size in work.sizes if size % 8]
        if odd:
            return f"sizes not multiples of 8: {', '.join(map(str, odd))}"
    return None
