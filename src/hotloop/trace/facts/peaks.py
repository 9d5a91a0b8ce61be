"""What named devices can do at most, from their vendors' data sheets (dense, without sparsity)."""

import re
from typing import NamedTuple


class Peak(NamedTuple):
    """Teraflops by precision and terabytes a second."""

    fp32: float
    tf32: float | None
    half: float
    """fp16 and bf16 on matrix units; None in spirit where a device has none: then it equals its vector rate."""
    bandwidth: float


_PEAKS: tuple[tuple[str, Peak], ...] = (
    # NVIDIA data sheets: B200 (HGX), H200, H100, A100, L40S, L4, A10, V100, T4; GeForce Ada and Ampere white papers.
    (r"\bB200\b", Peak(75, 1100, 2250, 8.0)),
    (r"\bH200\b", Peak(67, 494.7, 989.4, 4.8)),
    (r"\bGH200\b", Peak(67, 494.7, 989.4, 4.0)),
    (r"H100 PCIe", Peak(51, 378, 756, 2.0)),
    (r"H100 NVL", Peak(60, 417.5, 835.5, 3.9)),
    (r"\bH100\b", Peak(67, 494.7, 989.4, 3.35)),
    (r"A100.*80GB", Peak(19.5, 156, 312, 2.039)),
    (r"\bA100\b", Peak(19.5, 156, 312, 1.555)),
    (r"\bL40S\b", Peak(91.6, 183, 362, 0.864)),
    (r"\bL4\b", Peak(30.3, 60, 121, 0.3)),
    (r"\bA10G?\b", Peak(31.2, 62.5, 125, 0.6)),
    (r"\bV100\b", Peak(15.7, None, 125, 0.9)),
    (r"\bT4\b", Peak(8.1, None, 65, 0.32)),
    (r"RTX 4090", Peak(82.6, 82.6, 165.2, 1.008)),
    (r"RTX 3090", Peak(35.6, 35.6, 71, 0.936)),
    # AMD data sheets: matrix rates; MI250X and MI210 per data sheet, MI250X as one of its two dies is seen by torch.
    (r"MI355X", Peak(157.3, None, 2516.6, 8.0)),
    (r"MI325X", Peak(163.4, 653.7, 1307.4, 6.0)),
    (r"MI300X", Peak(163.4, 653.7, 1307.4, 5.3)),
    (r"MI250X", Peak(47.9, None, 191.5, 1.6)),
    (r"MI210", Peak(45.3, None, 181, 1.6)),
)


def peak_of(device: str) -> Peak | None:
    """The peaks of a device by its name; None: it is not in the table, and no share of a roof is given."""
    return next((peak for pattern, peak in _PEAKS if re.search(pattern, device)), None)


def tera_flops(peak: Peak, dtype: str, allow_tf32: bool) -> float | None:
    """The roof for one type: half types on matrix units, floats with or without TF32; None: not in the table."""
    if dtype in {"c10::Half", "c10::BFloat16"}:
        return peak.half
    if dtype != "float":
        return None  # of fp8, int8 and fp64 each device has another multiple
    return peak.tf32 if allow_tf32 and peak.tf32 is not None else peak.fp32
