"""From what the operators' and FLOPs' windows wrote to the observation, numbers that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hotloop.model.deep import Deep
from hotloop.model.machine import Cores, DeviceRates, MachineCard, MachineIdentity, Rate
from hotloop.model.observation import Observation, RankObservation
from hotloop.model.operators import Efficiency, Flops, Product
from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.profile.efficiency import with_efficiency, with_quiet_peak
from hotloop.observe.profile.operators import read_flops, read_operators
from hotloop.probe.record.result_file import result_path, write_result_file

from ..diagnose.observations import FINE, STEP, with_program
from .synthetic import Script

_SHAPES = [[8, 16], [16, 32]]
_COUNTED = {
    "products": [{"name": "aten::addmm", "shapes": _SHAPES, "dtype": "float32", "count": 4, "flop": 32_768}],
    "unknown": [],
}


def _file(folder: Path, name: str, value: Any, steps: int) -> DeepFile:
    file = DeepFile(
        name=name, pid=7, rank=None, steps=steps, begin_ns=0, end_ns=500_000_000, value=value, error=None
    )
    write_result_file(result_path(folder, name, 7), msgspec.to_builtins(file))
    return file


def _row(name: str, self_us: float, count: int, products: list[Any]) -> dict[str, Any]:
    return {
        "name": name,
        "shapes": _SHAPES,
        "count": count,
        "self_us": self_us,
        "device_us": 0.0,
        "bytes": 4096,
        "products": products,
    }


def _profiled(*rows: dict[str, Any]) -> dict[str, Any]:
    return {
        "rows": list(rows),
        "num": 20,
        "self_us": sum(row["self_us"] for row in rows),
        "device_us": None,
    }


def test_operators_are_per_step_and_carry_the_flops_of_their_products(tmp_path: Path) -> None:
    _file(tmp_path, "flops", _COUNTED, 1)
    rows = (
        _row("aten::relu", 100.0, 8, []),
        _row("aten::mkl_linear", 300.0, 8, [("aten::addmm", _SHAPES, 8)]),
    )
    file = _file(tmp_path, "operators", _profiled(*rows), 2)
    seen = read_operators(tmp_path, file, Script(tmp_path).timeline())
    assert [one.name for one in seen.operators] == ["aten::mkl_linear", "aten::relu"], (
        "the most expensive first"
    )
    product, relu = seen.operators
    assert (product.count, product.share, product.allocated_bytes) == (4.0, 0.75, 2048.0)
    assert product.self_s == pytest.approx(150e-6)
    assert product.flop == 4 * 8192
    assert relu.flop is None
    assert seen.num == 10


def test_operators_without_counted_flops(tmp_path: Path) -> None:
    rows = (_row("aten::addmm", 300.0, 8, [("aten::addmm", _SHAPES, 8)]),)
    file = _file(tmp_path, "operators", _profiled(*rows), 2)
    (one,) = read_operators(tmp_path, file, Script(tmp_path).timeline()).operators
    assert one.flop is None


def test_flops_are_per_step(tmp_path: Path) -> None:
    seen = read_flops(tmp_path, _file(tmp_path, "flops", _COUNTED, 2), Script(tmp_path).timeline())
    assert seen.flop == 16_384
    assert seen.products[0].count == 2


def _card(**flop_per_s: float) -> MachineCard:
    rates = {
        name: Rate(median=value * 0.9, low=value * 0.8, high=value, num=3, method="")
        for name, value in flop_per_s.items()
    }
    return MachineCard(
        measured_at="2026-01-01T00:00:00+00:00",
        identity=MachineIdentity(
            cpu_model="a", num_cores=2, memory_bytes=1, os="Linux 6.8 x86_64", python_version="3.11"
        ),
        cores=Cores(num_logical=2, num_usable=2),
        wall_s=1.0,
        devices=tuple(
            DeviceRates(device=device, name=device, matmul_flop_per_s=rates) for device in ("cpu", "cuda:0")
        ),
    )


def _efficiency(
    card: MachineCard | None, dtype: str = "float32", observation: Observation = FINE
) -> Efficiency:
    flops = Flops(flop=2e9, products=(Product(name="aten::mm", shapes=(), dtype=dtype, count=1.0, flop=2e9),))
    seen = with_efficiency(msgspec.structs.replace(observation, deep=Deep(flops=flops)), card).efficiency
    assert seen is not None
    return seen


def test_mfu_is_the_share_of_the_measured_peak_in_the_precision_of_the_products() -> None:
    seen = _efficiency(_card(fp32=1e11, bf16=4e11))
    assert seen.flop_per_s == pytest.approx(2e9 / 0.1)
    assert seen.mfu == pytest.approx(0.2)
    assert _efficiency(_card(fp32=1e11, bf16=4e11), "bfloat16").mfu == pytest.approx(0.05)


def test_tf32_is_what_a_gpu_computes_float32_in_when_it_may() -> None:
    seen = _efficiency(
        _card(tf32=1e12, fp32=1e11), observation=with_program(device="cuda", matmul_precision="high")
    )
    assert (seen.precision, seen.mfu) == ("tf32", pytest.approx(0.02))


def test_ranks_share_a_processor_and_have_a_gpu_each() -> None:
    ranks = tuple(RankObservation(rank=rank, pid=rank, role="train", step=STEP, phases={}) for rank in (0, 1))
    two = msgspec.structs.replace(FINE, ranks=ranks)
    assert _efficiency(_card(fp32=1e11), observation=two).mfu == pytest.approx(0.4)
    assert _efficiency(_card(fp32=1e11), observation=with_program(two, device="cuda")).mfu == pytest.approx(
        0.2
    )


def test_without_a_measured_peak_there_is_a_reason() -> None:
    seen = _efficiency(None)
    assert seen.mfu is None
    assert seen.why_no_peak is not None
    assert "hotloop machine" in seen.why_no_peak
    assert "fp64" in (_efficiency(_card(fp32=1e11), "float64").why_no_peak or "")


def _under_load(card: MachineCard, share: float) -> MachineCard:
    return msgspec.structs.replace(card, foreign_ratio=share)


def test_a_peak_that_others_held_down_is_not_quoted() -> None:
    seen = _efficiency(_under_load(_card(fp32=1e11), 0.86))
    assert (seen.mfu, seen.peak_flop_per_s) == (None, None)
    assert "other processes used 86.0% of the CPU" in (seen.why_no_peak or "")
    assert _efficiency(_under_load(_card(fp32=1e11), 0.02)).mfu == pytest.approx(0.2)


def test_a_peak_that_the_program_beats_is_none() -> None:
    seen = _efficiency(_card(fp32=1e10))
    assert (seen.mfu, seen.peak_flop_per_s) == (None, None)
    assert "hotloop machine --fresh" in (seen.why_no_peak or "")


@pytest.mark.parametrize("share", [0.86, None], ids=["beside others", "by an earlier version"])
def test_a_stored_peak_that_others_held_down_is_taken_back(share: float | None) -> None:
    flops = Flops(
        flop=2e9, products=(Product(name="aten::mm", shapes=(), dtype="float32", count=1.0, flop=2e9),)
    )
    kept = Efficiency(
        flop=2e9,
        flop_per_s=2e10,
        precision="fp32",
        peak_flop_per_s=5.2e10,
        peak_foreign_share=share,
        mfu=0.38,
    )
    stored = msgspec.structs.replace(FINE, deep=Deep(flops=flops), efficiency=kept)
    for card, mfu in (
        (None, None),
        (_under_load(_card(fp32=5.2e10), 0.86), None),
        (_card(fp32=1e11), pytest.approx(0.2)),
    ):
        now = with_quiet_peak(stored, card).efficiency
        assert now is not None
        assert now.mfu == mfu


def test_nothing_is_said_where_no_flops_were_counted() -> None:
    assert with_efficiency(FINE, _card(fp32=1e11)).efficiency is None


def _on_gpu(*products: tuple[str, str, float], **facts: Any) -> Efficiency:
    """Return the efficiency of a program on a GPU: 60 TFLOP/s in fp32, 400 in TF32, 900 in bf16."""
    card = _card(fp32=60e12, tf32=400e12, bf16=900e12)
    counted = tuple(
        Product(name=name, shapes=(), dtype=dtype, count=1.0, flop=flop) for name, dtype, flop in products
    )
    flops = Flops(flop=sum(one.flop for one in counted), products=counted)
    seen = with_program(device="cuda", **facts)
    seen = msgspec.structs.replace(seen, deep=Deep(flops=flops))
    found = with_efficiency(seen, card).efficiency
    assert found is not None
    return found


def test_convolutions_in_float32_have_cudnns_peak_which_is_tf32() -> None:
    """200 TFLOP/s of convolutions in float32 are half of the TF32 peak, not 330% of the float32 one."""
    conv = ("aten::convolution", "float32", 200e12 * STEP.median_s)
    default = _on_gpu(conv, convolution_precision="tf32")
    assert default.mfu == pytest.approx(0.5)
    assert default.precision == "tf32"
    assert _on_gpu(conv, convolution_precision="float32").precision == "fp32"


def test_each_product_has_the_peak_of_its_own_precision() -> None:
    """A second's worth of work in each precision, at their peaks, in the time of one step."""
    third = STEP.median_s / 3
    efficiency = _on_gpu(
        ("aten::mm", "float32", 60e12 * third),
        ("aten::convolution", "float32", 400e12 * third),
        ("aten::mm", "bfloat16", 900e12 * third),
        convolution_precision="tf32",
        matmul_precision="highest",
    )
    assert efficiency.mfu == pytest.approx(1.0)


def test_on_amd_float32_is_float32() -> None:
    conv = ("aten::convolution", "float32", 30e12 * STEP.median_s)
    assert _on_gpu(conv, convolution_precision="tf32", hip_version="6.4").precision == "fp32"
