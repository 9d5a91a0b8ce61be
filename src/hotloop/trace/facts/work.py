"""How many operations an operator does and how many bytes it has to move, from the shapes it was called with."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

Shape = tuple[int, ...]


class Work(NamedTuple):
    """The least that an operator has to do; `sizes` are the dimensions that tensor cores care about: those that lie
    next to each other in memory, so not the number of rows of a product."""

    kind: str
    """gemm, convolution, attention, normalization or triton."""
    flops: int | None
    """None: only the bytes are known."""
    size_bytes: int
    sizes: tuple[int, ...]
    dtype: str


class Arguments(NamedTuple):
    """An operator's arguments; empty shapes are scalars, lists and absent tensors."""

    dims: tuple[Any, ...]
    types: tuple[str, ...]
    concrete: tuple[Any, ...]


_ITEM_BYTES = {
    "float": 4, "c10::Half": 2, "c10::BFloat16": 2, "double": 8, "signed char": 1, "unsigned char": 1, "int": 4,
    "long int": 8, "long": 8, "bool": 1, "short int": 2, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1, "c10::complex<float>": 8, "c10::complex<double>": 16,
}  # fmt: skip


def parse_arguments(dims: bytes, types: bytes | None, concrete: bytes | None) -> Arguments | None:
    """The arguments out of their JSON text; None where it is not what a profiler writes."""
    try:
        shapes = msgspec.json.decode(dims, type=tuple[Any, ...])
        names = msgspec.json.decode(types, type=tuple[str, ...]) if types else ()
        values = msgspec.json.decode(concrete, type=tuple[Any, ...]) if concrete else ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Arguments(shapes, names, values)


def work_of(name: str, arguments: Arguments) -> Work | None:
    """The work of one call; None: not an operator whose work follows from its shapes, or shapes are missing."""
    rule = _RULES.get(name) or (_triton if name.startswith("triton_") else None)
    if rule is None:
        return None
    try:
        return rule(arguments)
    except (IndexError, ValueError, TypeError, ZeroDivisionError, OverflowError):
        return None


def _shape(arguments: Arguments, index: int) -> Shape:
    shape = arguments.dims[index]
    if not shape or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(shape)
    return tuple(shape)


def _dtype(arguments: Arguments, index: int) -> str:
    return arguments.types[index] if index < len(arguments.types) else ""


def _item_bytes(dtype: str) -> int:
    return _ITEM_BYTES.get(dtype, 4)


def _read_bytes(arguments: Arguments) -> int:
    """Every tensor among the arguments, once."""
    total = 0
    for index, shape in enumerate(arguments.dims):
        if shape and all(type(size) is int for size in shape):
            total += math.prod(shape) * _item_bytes(_dtype(arguments, index))
    return total


def _gemm(left: int, right: int) -> Callable[[Arguments], Work]:
    def rule(arguments: Arguments) -> Work:
        a, b = _shape(arguments, left), _shape(arguments, right)
        batch, m, k, n = math.prod(a[:-2]), a[-2], a[-1], b[-1]
        dtype = _dtype(arguments, left)
        moved = batch * (m * k + k * n + m * n) * _item_bytes(dtype)
        return Work("gemm", 2 * batch * m * n * k, moved, (k, n), dtype)

    return rule


def _linear(arguments: Arguments) -> Work:
    x, weight = _shape(arguments, 0), _shape(arguments, 1)
    m, k, n = math.prod(x[:-1]), x[-1], weight[0]
    dtype = _dtype(arguments, 0)
    return Work("gemm", 2 * m * n * k, (m * k + k * n + m * n) * _item_bytes(dtype), (k, n), dtype)


def _numbers(value: Any) -> tuple[int, ...]:
    found = msgspec.json.decode(value) if isinstance(value, str) else value
    return tuple(int(item) for item in (found if isinstance(found, list) else [found]))


class _ConvolutionSlots(NamedTuple):
    """Where a backend's convolution takes its parameters; they differ in order."""

    x: int
    weight: int
    padding: int
    stride: int
    dilation: int


def _convolution(slots: _ConvolutionSlots) -> Callable[[Arguments], Work]:
    def rule(arguments: Arguments) -> Work:
        x, weight = _shape(arguments, slots.x), _shape(arguments, slots.weight)
        rank = len(weight) - 2
        padding, stride, dilation = (
            _widened(_numbers(arguments.concrete[slot]), rank)
            for slot in (slots.padding, slots.stride, slots.dilation)
        )
        out = [
            (size + 2 * pad - dil * (kernel - 1) - 1) // step + 1
            for size, pad, dil, kernel, step in zip(x[2:], padding, dilation, weight[2:], stride, strict=True)
        ]
        dtype = _dtype(arguments, slots.x)
        outputs = x[0] * weight[0] * math.prod(out)
        flops = 2 * outputs * math.prod(weight[1:])
        moved = (math.prod(x) + math.prod(weight) + outputs) * _item_bytes(dtype)
        return Work("convolution", flops, moved, (weight[0], x[1]), dtype)

    return rule


def _widened(values: Sequence[int], rank: int) -> tuple[int, ...]:
    return tuple(values) if len(values) == rank else tuple(values[:1]) * rank


def _convolution_backward(arguments: Arguments) -> Work:
    gradient, x, weight = (_shape(arguments, index) for index in range(3))
    wanted = sum(1 for flag in msgspec.json.decode(arguments.concrete[10].lower())[:2] if flag)
    dtype = _dtype(arguments, 0)
    # The weight of a transposed convolution is applied at each of its inputs, not at each of its outputs.
    is_transposed = str(arguments.concrete[7]).lower() == "true"
    flops = 2 * math.prod(x if is_transposed else gradient) * math.prod(weight[1:]) * wanted
    moved = (math.prod(gradient) + 2 * math.prod(x) + 2 * math.prod(weight)) * _item_bytes(dtype)
    return Work("convolution", flops, moved, (weight[0], x[1]), dtype)


def _attention(head_axis: int, num_matmuls: int, query: int = 0) -> Callable[[Arguments], Work]:
    """Scaled dot-product attention; half of the work where it is causal is not taken off.

    Args:
        head_axis: 1 where heads come before the sequence, 2 where after.
        num_matmuls: 2 forward; 5 backward, which computes the scores again (as in the FlashAttention papers).
        query: index of the query tensor.
    """

    def rule(arguments: Arguments) -> Work:
        q, k = _shape(arguments, query), _shape(arguments, query + 1)
        v = _shape(arguments, query + 2)
        if len(q) != 4:
            raise ValueError(q)
        sequence = 3 - head_axis
        pairs = q[0] * q[head_axis] * q[sequence] * k[sequence]
        dtype = _dtype(arguments, query)
        flops = 2 * pairs * (q[3] + v[3]) * num_matmuls // 2
        moved = (2 * math.prod(q) + math.prod(k) + math.prod(v)) * _item_bytes(dtype) * num_matmuls // 2
        return Work("attention", flops, moved, (q[3],), dtype)

    return rule


def _normalization(num_passes: int) -> Callable[[Arguments], Work]:
    """Bytes of the tensor read and written; the arithmetic never limits a normalization."""

    def rule(arguments: Arguments) -> Work:
        dtype = _dtype(arguments, 0)
        return Work(
            "normalization",
            None,
            math.prod(_shape(arguments, 0)) * _item_bytes(dtype) * num_passes,
            (),
            dtype,
        )

    return rule


def _triton(arguments: Arguments) -> Work:
    """Inductor hands its kernels every tensor they read or write: their bytes once are the least traffic."""
    moved = _read_bytes(arguments)
    if not moved:
        raise ValueError(arguments)
    return Work("triton", None, moved, (), _dtype(arguments, 0))


_RULES: dict[str, Callable[[Arguments], Work]] = {
    "aten::mm": _gemm(0, 1),
    "aten::bmm": _gemm(0, 1),
    "aten::addmm": _gemm(1, 2),
    "aten::baddbmm": _gemm(1, 2),
    "aten::_scaled_mm": _gemm(0, 1),
    "aten::_int_mm": _gemm(0, 1),
    "aten::linear": _linear,
    "aten::convolution": _convolution(_ConvolutionSlots(0, 1, padding=4, stride=3, dilation=5)),
    "aten::_convolution": _convolution(_ConvolutionSlots(0, 1, padding=4, stride=3, dilation=5)),
    "aten::cudnn_convolution": _convolution(_ConvolutionSlots(0, 1, padding=2, stride=3, dilation=4)),
    "aten::miopen_convolution": _convolution(_ConvolutionSlots(0, 1, padding=3, stride=4, dilation=5)),
    "aten::convolution_backward": _convolution_backward,
    "aten::_flash_attention_forward": _attention(2, 2),
    "aten::_efficient_attention_forward": _attention(2, 2),
    "aten::_scaled_dot_product_cudnn_attention": _attention(1, 2),
    "aten::_flash_attention_backward": _attention(2, 5, query=1),
    "aten::_efficient_attention_backward": _attention(2, 5, query=1),
    "aten::_scaled_dot_product_cudnn_attention_backward": _attention(1, 5, query=1),
    "aten::native_layer_norm": _normalization(2),
    "aten::native_batch_norm": _normalization(2),
    "aten::cudnn_batch_norm": _normalization(2),
    "aten::miopen_batch_norm": _normalization(2),
    "aten::native_group_norm": _normalization(2),
    "aten::_fused_rms_norm": _normalization(2),
    "aten::native_layer_norm_backward": _normalization(3),
    "aten::native_batch_norm_backward": _normalization(3),
    "aten::cudnn_batch_norm_backward": _normalization(3),
    "aten::miopen_batch_norm_backward": _normalization(3),
}
