"""The measurements that need torch, on small sizes: what each counts, and what a failure costs."""

from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.machine.card import torch_rates
from hotloop.machine.card.torch_rates import _Bench, _convolution, _copy_rates, _matmul, _triad

torch: Any = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_rates, "_COPY_BYTES", 1 << 16)
    monkeypatch.setattr(torch_rates, "_MATMUL_SIZES", (16, 32))
    monkeypatch.setattr(torch_rates, "_REPEAT_S", 1e-9)
    monkeypatch.setattr(torch_rates, "_BUDGET_S", 0.0)


def test_the_amounts_are_those_of_the_operations() -> None:
    bench = _Bench(torch, "cpu", [])
    product, flop, _ = _matmul(bench, torch.float32)
    size = product().shape[0]
    assert flop == 2 * size**3
    layer, flop, _ = _convolution(bench, torch.float32)
    out = layer()
    assert flop == 2 * out.numel() * 128 * 3 * 3
    triad, num_bytes, _ = _triad(bench)
    assert num_bytes == 3 * 4 * triad().numel()
    assert triad()[0] == 4.0


def test_copies_of_a_device() -> None:
    errors: list[str] = []
    copies = _copy_rates(_Bench(torch, "cpu", errors), ["cpu"])
    assert copies["device"] == "cpu"
    assert copies["device_to_device_bytes_per_s"] is not None
    assert copies["pageable_to_device_bytes_per_s"] is not None
    assert copies["pinned_to_device_bytes_per_s"] is None
    assert copies["peer_bytes_per_s"] == {}
    assert errors == []


def test_what_a_device_refuses_is_missing_with_its_reason() -> None:
    errors: list[str] = []

    def refuse() -> Any:
        raise RuntimeError('"addmm_impl" not implemented for Half\nmore lines')

    assert _Bench(torch, "cpu", errors).rate("fp16 matmul", refuse) is None
    assert errors == ['cpu fp16 matmul: "addmm_impl" not implemented for Half']


def test_a_gpu_is_waited_for_before_the_clock_is_read() -> None:
    calls: list[str] = []
    fake = SimpleNamespace(cuda=SimpleNamespace(synchronize=lambda device: calls.append(f"wait {device}")))
    bench = _Bench(fake, "cuda:1", [])
    rate = bench.rate("work", lambda: (lambda: calls.append("work"), 1.0, "fake"))
    assert rate is not None
    assert calls[-2:] == ["work", "wait cuda:1"]
    assert calls.count("work") == calls.count("wait cuda:1")
