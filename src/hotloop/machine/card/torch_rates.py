"""What torch reaches on every device of this machine: matmul, convolution, memory and copies.

Runs as a process of its own (`python -m hotloop.machine.card.torch_rates THREADS`), so that the command line
starts without torch and a failure here costs only these numbers. The Python may be another than hotloop's, with torch
and nothing else. The result is JSON on standard output: the fields of `DeviceRates` and `CopyRates`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from hotloop.machine.card.repeats import rates_of, spread

_REPEAT_S = 0.1
"""A repeat aims at this, so that a 10 ms hiccup is at most a tenth of it."""
_BUDGET_S = 0.5
_MATMUL_SIZES = (256, 512, 1024, 2048, 4096, 8192)
_COPY_BYTES = 256 << 20
"""Large enough that launch latency (about 10 us) is below 0.1% of a copy at 25 GB/s."""


_Fields = dict[str, Any]


class _Bench:
    """Measures on one device and keeps what failed."""

    def __init__(self, torch: Any, device: str, errors: list[str]) -> None:
        self.torch = torch
        self.device = device
        self._errors = errors

    def rate(self, what: str, prepare: Callable[[], tuple[Callable[[], Any], float, str]]) -> _Fields | None:
        """Return the rate of an operation; `prepare` gives it, its amount and how it is done."""
        try:
            operation, amount, method = prepare()
            num = self._num_calls(operation)

            def work() -> float:
                for _ in range(num):
                    operation()
                self._finish()
                return amount * num

            return spread(rates_of(work, _BUDGET_S), f"torch {method}, {num} a repeat")
        except (RuntimeError, NotImplementedError, TypeError) as error:
            self._errors.append(f"{self.device} {what}: {str(error).splitlines()[0]}")
            return None

    def seconds(self, operation: Callable[[], Any]) -> float:
        """Return how long the second of two calls takes."""
        operation()
        self._finish()
        return 1 / max(rates_of(lambda: self._one(operation), 0.0))

    def _one(self, operation: Callable[[], Any]) -> float:
        operation()
        self._finish()
        return 1.0

    def _num_calls(self, operation: Callable[[], Any]) -> int:
        return max(1, min(1000, round(_REPEAT_S / self.seconds(operation))))

    def _finish(self) -> None:
        if self.device.startswith("cuda"):
            self.torch.cuda.synchronize(self.device)
        elif self.device == "mps":
            self.torch.mps.synchronize()


def measure(torch: Any, num_threads: int) -> _Fields:
    """Measure every device that torch can use; `errors` is one line for each number that failed."""
    torch.set_num_threads(num_threads)
    errors: list[str] = []
    names = ["cpu"]
    if torch.cuda.is_available():
        names += [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    elif torch.backends.mps.is_available():
        names.append("mps")
    benches = [_Bench(torch, name, errors) for name in names]
    with torch.inference_mode():
        return {
            "torch_version": str(torch.__version__),
            "devices": tuple(_device_rates(bench) for bench in benches),
            "copies": tuple(_copy_rates(bench, names[1:]) for bench in benches if bench.device != "cpu"),
            "errors": tuple(errors),
        }


def _device_rates(bench: _Bench) -> _Fields:
    torch, is_cuda = bench.torch, bench.device.startswith("cuda")
    precisions = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    if is_cuda and torch.version.hip is None and torch.cuda.get_device_capability(bench.device)[0] >= 8:
        precisions = {"fp32": torch.float32, "tf32": torch.float32, **precisions}
    matmul, convolution = {}, {}
    for name, dtype in precisions.items():
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = name == "tf32"
        matmul[name] = bench.rate(f"{name} matmul", lambda dtype=dtype: _matmul(bench, dtype))  # type: ignore[misc]
        convolution[name] = bench.rate(
            f"{name} convolution",
            lambda dtype=dtype: _convolution(bench, dtype),  # type: ignore[misc]
        )
    return {
        "device": bench.device,
        "name": torch.cuda.get_device_name(bench.device) if is_cuda else bench.device,
        "matmul_flop_per_s": {name: rate for name, rate in matmul.items() if rate is not None},
        "convolution_flop_per_s": {name: rate for name, rate in convolution.items() if rate is not None},
        "memory_bytes_per_s": None if bench.device == "cpu" else bench.rate("memory", lambda: _triad(bench)),
    }


def _matmul(bench: _Bench, dtype: Any) -> tuple[Callable[[], Any], float, str]:
    """A square linear layer, as large as one product still fits into a repeat: small ones do not fill a GPU.

    The weights are transposed, as in a model: in bf16 and fp16 on a processor without units for them the
    other layout was seen 6 to 10 times slower.
    """
    torch, size = bench.torch, _MATMUL_SIZES[0]

    def product(size: int) -> Callable[[], Any]:
        inputs, weights = (torch.rand(size, size, device=bench.device).to(dtype) for _ in range(2))
        return lambda: torch.nn.functional.linear(inputs, weights)

    for larger in _MATMUL_SIZES[1:]:
        if bench.seconds(product(size)) * (larger / size) ** 3 > _REPEAT_S:
            break
        size = larger
    return product(size), 2.0 * size**3, f"linear {size}x{size}x{size} {dtype}"


def _convolution(bench: _Bench, dtype: Any) -> tuple[Callable[[], Any], float, str]:
    """A 3x3 layer of ResNet's second stage: 128 channels on 28x28; batch 4 on a CPU, 128 on a GPU."""
    torch, batch = bench.torch, 4 if bench.device == "cpu" else 128
    images = torch.rand(batch, 128, 28, 28, device=bench.device).to(dtype)
    weights = torch.rand(128, 128, 3, 3, device=bench.device).to(dtype)
    images = images.to(memory_format=torch.channels_last)
    weights = weights.to(memory_format=torch.channels_last)
    flop = 2.0 * batch * 28 * 28 * 128 * 128 * 9
    method = f"conv2d {batch}x128x28x28, 3x3, channels_last {dtype}"
    return lambda: torch.nn.functional.conv2d(images, weights, padding=1), flop, method


def _triad(bench: _Bench) -> tuple[Callable[[], Any], float, str]:
    num = _COPY_BYTES // 4
    b, c = (bench.torch.ones(num, device=bench.device) for _ in range(2))
    a = bench.torch.empty_like(b)
    return (
        lambda: bench.torch.add(b, c, alpha=3.0, out=a),
        12.0 * num,
        f"triad, 3 arrays of {num * 4 / 1e6:.0f} MB",
    )


def _copy_rates(bench: _Bench, devices: list[str]) -> _Fields:
    torch = bench.torch

    def copy(target: str, source: str, pinned: bool) -> tuple[Callable[[], Any], float, str]:
        """A host tensor is pinned or pageable; the copy is asynchronous where it can be."""
        to, from_ = (
            torch.empty(_COPY_BYTES, dtype=torch.uint8, device=name, pin_memory=pinned and name == "cpu")
            for name in (target, source)
        )
        method = f"copy_ of {_COPY_BYTES / 1e6:.0f} MB{', pinned' if pinned else ''}"
        return lambda: to.copy_(from_, non_blocking=pinned), float(_COPY_BYTES), method

    here, can_pin = bench.device, bench.device.startswith("cuda")
    peers = {
        other: bench.rate(f"copy to {other}", lambda other=other: copy(other, here, False))  # type: ignore[misc]
        for other in devices
        if other != here
    }
    return {
        "device": here,
        "pinned_to_device_bytes_per_s": bench.rate("pinned copy", lambda: copy(here, "cpu", True))
        if can_pin
        else None,
        "pageable_to_device_bytes_per_s": bench.rate("pageable copy", lambda: copy(here, "cpu", False)),
        "device_to_pinned_bytes_per_s": bench.rate("copy back", lambda: copy("cpu", here, True))
        if can_pin
        else None,
        "device_to_device_bytes_per_s": bench.rate("device copy", lambda: copy(here, here, False)),
        "peer_bytes_per_s": {other: rate for other, rate in peers.items() if rate is not None},
    }


def _main() -> None:
    import torch

    sys.stdout.write(json.dumps(measure(torch, int(sys.argv[1]))))


if __name__ == "__main__":
    _main()
