"""The card and the monitors on a machine that has an accelerator; `make gpu` runs these."""

import os
from pathlib import Path
from typing import Any

import pytest

from hotloop.machine.card.torch_process import torch_rates
from hotloop.machine.host.identity import identity
from hotloop.machine.monitor.monitor import Monitor

torch: Any = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no accelerator"),
]


def test_the_accelerator_is_part_of_the_identity() -> None:
    assert len(identity().accelerators) >= 1


def test_every_rate_of_the_accelerator_is_measured() -> None:
    rates = torch_rates(1)
    assert rates.errors == ()
    first = next(device for device in rates.devices if device.device == "cuda:0")
    assert set(first.matmul_flop_per_s) >= {"fp32", "bf16", "fp16"}
    assert set(first.convolution_flop_per_s) >= {"fp32", "fp16"}
    assert first.memory_bytes_per_s is not None
    copies = rates.copies[0]
    assert copies.pinned_to_device_bytes_per_s is not None
    assert copies.device_to_pinned_bytes_per_s is not None
    on_host, on_device = copies.pageable_to_device_bytes_per_s, copies.device_to_device_bytes_per_s
    assert on_host is not None
    assert on_device is not None
    assert on_device.median > on_host.median


@pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA driver")
def test_the_monitor_sees_the_memory_that_we_take() -> None:
    pytest.importorskip("pynvml")
    with Monitor((os.getpid(),), interval_s=0.1) as monitor:
        held = torch.empty(1 << 30, dtype=torch.uint8, device="cuda:0")
        torch.cuda.synchronize()
        start = len(monitor.columns.times_s)
        while len(monitor.columns.times_s) < start + 5:
            torch.cuda.synchronize()
    used = [m for m in monitor.columns.metrics if m.name == "gpu_memory_used_bytes"]
    spread = monitor.columns.spread(used[0])
    assert spread is not None
    assert spread.high >= held.numel()
