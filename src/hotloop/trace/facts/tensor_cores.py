"""Whether matrix units (tensor cores, matrix cores) could do an operator's work, and what is in the way."""

import re

import numpy as np

from hotloop.trace.facts.work import Work
from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.read.columns import NONE, Array
from hotloop.trace.read.trace import Trace

_TF32_KERNEL = re.compile(r"tf32|s1688gemm|_s1688_|1688tf32", re.IGNORECASE)


def tf32_rows(linked: LinkedTrace) -> Array:
    """Per host row: it launched a kernel that computes in TF32, so its float32 product is on tensor cores already."""
    trace, operator = linked.trace, linked.launches.operator
    is_tf32 = np.array([_TF32_KERNEL.search(name) is not None for name in trace.names] or [False])
    rows = np.zeros(len(trace.host), dtype=bool)
    rows[operator[(operator != NONE) & is_tf32[trace.device.name]]] = True
    return rows


def has_matrix_units(trace: Trace) -> bool:
    """Volta (7.0) and later; AMD's data-centre parts report 9.x and have them as well."""
    return any(device.major is not None and device.major >= 7 for device in trace.metadata.devices)


def convolution_note(types: str, tf32: bool) -> str | None:
    """The same for a convolution of which only the types are known."""
    return (
        "fp32"
        if '"float"' in types and "Half" not in types and "BFloat16" not in types and not tf32
        else None
    )


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
