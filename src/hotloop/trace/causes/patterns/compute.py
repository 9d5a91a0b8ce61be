"""What the device does that it could do with less."""

import re
from collections.abc import Iterator

import numpy as np

from hotloop.model.finding import Finding, Severity
from hotloop.model.quantities import counted, duration
from hotloop.trace.causes.patterns.idle_pattern import NOTABLE, Seen
from hotloop.trace.facts.intervals import union
from hotloop.trace.facts.tensor_cores import has_matrix_units
from hotloop.trace.read.clock import Int64
from hotloop.trace.read.kinds import Kind

_LAYOUT = re.compile(
    r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|batched_transpose|SubTensorOpWithTransform|convertTensor",
    re.I,
)
_COPIES = re.compile(r"^aten::(?:copy_|clone|contiguous|_to_copy)$")
_FUSED = re.compile(r"Fused(?:Adam|Sgd|Adagrad)")
"""One launch of these takes 320 chunks of 65,536 numbers (2,240 on newer devices): a large model needs many of them."""
_FOREACH = re.compile(r"^aten::_foreach_|multi_tensor_apply")
_STEP = re.compile(r"^Optimizer\.step#(.+)\.step$")
_ZERO = re.compile(r"^Optimizer\.zero_grad#|^## zero_grad ##$")
_COMPILING = re.compile(
    r"_compile\.<locals>|compile_fx(?!\.py\(\d+\): run$)|_compile_inner|convert_frame|dynamo_timed"
    r"|CachingAutotuner\.benchmark|TorchDynamo Cache Miss"
)
"""`run` of compile_fx.py is what each call of a model with CUDA graphs goes through."""


def fp32_matmul(seen: Seen) -> Iterator[Finding]:
    """Matrix products in float32 on a device with faster units."""
    if not has_matrix_units(seen.linked.trace):
        return
    rows = [row for row in seen.operators if row.tensor_cores == "fp32"]
    total = sum(row.device_us for row in rows)
    if seen.share(total) < NOTABLE:
        return
    names = sorted({row.name for row in rows})
    # bf16 and TF32 came with compute capability 8.0; AMD's 9.x parts have bf16 as well.
    modern = all((device.major or 0) >= 8 for device in seen.linked.trace.metadata.devices)
    yield Finding(
        code="fp32-matmul",
        title="Matrix products in float32 on a device with matrix units",
        severity=Severity.WARNING,
        metric="operators",
        cost_s=seen.per_step_s(total),
        evidence=f"{duration(total / 1e6)} ({seen.share(total):.1%}) in {', '.join(names[:4])}",
        advice="autocast to bf16, or allow TF32" if modern else "autocast to fp16 with gradient scaling",
        optimization="autocast_bf16" if modern else "autocast_fp16",
    )


def odd_sizes(seen: Seen) -> Iterator[Finding]:
    """Half-precision matrix products whose sizes are not multiples of 8."""
    rows = [row for row in seen.operators if row.tensor_cores and row.tensor_cores.startswith("sizes")]
    total = sum(row.device_us for row in rows)
    if seen.share(total) < NOTABLE:
        return
    worst = rows[0]
    yield Finding(
        code="odd-matmul-size",
        title="Matrix sizes are not multiples of 8",
        severity=Severity.INFO,
        metric="operators",
        cost_s=seen.per_step_s(total),
        evidence=f"{duration(total / 1e6)}; the largest is {worst.name} {worst.shapes}: {worst.tensor_cores}",
        advice="pad sequence, vocabulary or channels to multiples of 8",
    )


def layout_conversions(seen: Seen) -> Iterator[Finding]:
    """Kernels that only turn one memory layout into another."""
    rows = [row for row in seen.kernels if _LAYOUT.search(row.name)]
    total = sum(row.total_us for row in rows)
    if seen.share(total) < NOTABLE / 2:
        return
    yield Finding(
        code="layout-conversion",
        title="Tensors are converted between memory layouts around convolutions",
        severity=Severity.WARNING,
        metric="kernels",
        cost_s=seen.per_step_s(total),
        evidence=f"{counted(sum(row.num for row in rows), 'conversion')}, "
        f"{duration(total / 1e6)} ({seen.share(total):.1%})",
        advice="keep model and input in channels_last",
        optimization="channels_last",
    )


def extra_copies(seen: Seen) -> Iterator[Finding]:
    """Device time in operators that only copy, on the device: what goes to the host or comes from it is no extra."""
    rows = [row for row in seen.operators if _COPIES.match(row.name)]
    total = sum(row.device_us - row.transfer_us for row in rows)
    if seen.share(total) < 2 * NOTABLE:
        return
    worst = max(rows, key=lambda row: row.device_us - row.transfer_us)
    yield Finding(
        code="extra-copies",
        title="Much of the device's time only copies tensors",
        severity=Severity.INFO,
        metric="operators",
        cost_s=seen.per_step_s(total),
        evidence=f"{duration(total / 1e6)} ({seen.share(total):.1%}) in copies; most in {worst.name} {worst.shapes}",
        advice="drop needless contiguous(), clone() and type conversions, or let compile fuse them",
        optimization="compile",
    )


def unfused_optimizer(seen: Seen) -> Iterator[Finding]:
    """An optimizer step of many small kernels, one tensor at a time or one operation at a time."""
    for name, start, end in _annotated(seen, _STEP):
        num, kernels_us, kernels = _launched_between(seen, start, end)
        calls = len(start)
        if not num or num / calls < _MANY_KERNELS or any(map(_FUSED.search, kernels)):
            continue
        foreach = any(map(_FOREACH.search, kernels))
        kind = "unfused-optimizer" if foreach else "single-tensor-loop"
        yield Finding(
            code=kind,
            title="The optimizer works in many small kernels" + ("" if foreach else ", tensor by tensor"),
            severity=Severity.WARNING,
            metric="kernels",
            cost_s=seen.per_step_s(kernels_us),
            evidence=f"{name}: {num / calls:,.0f} kernels a step, {duration(kernels_us / calls / 1e6)} on the device",
            advice="fused=True, or else foreach=True",
            optimization="fused_optimizer",
        )


_MANY_KERNELS = 32
"""A fused step needs a few kernels per dtype and device; foreach Adam about a dozen per chunk (read in torch 2.13)."""


def memset_gradients(seen: Seen) -> Iterator[Finding]:
    """Gradients set to zero instead of to None."""
    found = _annotated(seen, _ZERO)
    for _, start, end in found[:1]:
        num, device_us, _ = _launched_between(seen, start, end)
        calls = len(start)
        if num / calls >= 2:
            yield Finding(
                code="memset-gradients",
                title="Gradients are zeroed by memset instead of dropped",
                severity=Severity.INFO,
                metric="kernels",
                cost_s=seen.per_step_s(device_us),
                evidence=f"{num / calls:,.0f} kernels and memsets in each of {counted(calls, 'call')} of zero_grad",
                advice="zero_grad(set_to_none=True)",
                optimization="zero_grad_none",
            )


def recompilation(seen: Seen) -> Iterator[Finding]:
    """The compiler runs while steps are being measured."""
    host = seen.linked.trace.host
    names = seen.linked.trace.names
    wanted = np.array([_COMPILING.search(name) is not None for name in names] or [False])[host.name]
    rows = np.flatnonzero(wanted & (host.kind != Kind.CALL))
    if not len(rows):
        return
    total = union(host.start[rows], host.end[rows]).total / 1000
    if seen.share(total) < NOTABLE:
        return
    yield Finding(
        code="recompilation",
        title="A model is compiled inside the measured window",
        severity=Severity.WARNING,
        metric="operators",
        cost_s=seen.per_step_s(total),
        evidence=f"{counted(len(rows), 'compiler frame')}, together {duration(total / 1e6)}",
        advice="warm up before profiling; if it recurs, mark changing sizes as dynamic",
        optimization="compile",
    )


def _annotated(seen: Seen, pattern: "re.Pattern[str]") -> list[tuple[str, Int64, Int64]]:
    host = seen.linked.trace.host
    found = []
    for index, name in enumerate(seen.linked.trace.names):
        if pattern.match(name):
            rows = np.flatnonzero((host.name == index) & (host.kind != Kind.PYTHON))
            if len(rows):
                found.append((name, host.start[rows], host.end[rows]))
    return found


def _launched_between(seen: Seen, start: Int64, end: Int64) -> tuple[int, float, set[str]]:
    """Device events launched inside the intervals: how many, for how long, and their names."""
    trace, call = seen.linked.trace, seen.linked.launches.call
    known = np.flatnonzero(call >= 0)
    launched = trace.host.start[call[known]]
    order = np.argsort(start)
    index = np.searchsorted(start[order], launched, side="right") - 1
    inside = known[(index >= 0) & (launched < end[order][np.maximum(index, 0)])]
    duration = trace.device.end[inside] - trace.device.start[inside]
    names = {trace.names[i] for i in set(trace.device.name[inside].tolist())}
    return len(inside), float(duration.sum()) / 1000, names
