"""What keeps two arms apart is said before a trial fails of it."""

from __future__ import annotations

import pytest

from hotloop.machine.devices.gpu import GpuDevice
from hotloop.model.observation import Observation
from hotloop.model.program import ModuleFacts
from hotloop.tune.design.preflight import Surroundings, hindrances

from ..diagnose.observations import with_loader, with_program


def _on_gpu() -> Observation:
    return with_program(device="cuda", loaders=())


def _gpu(mode: str = "default", *, mig: bool = False) -> GpuDevice:
    return GpuDevice(index=0, name="Simulated H100", memory_bytes=80 << 30, compute_mode=mode, mig=mig)


@pytest.mark.parametrize(
    ("seen", "says", "one_at_a_time"),
    [
        (Surroundings(devices=(_gpu("exclusive process"),)), "nvidia-smi -i 0 -c DEFAULT", True),
        (Surroundings(devices=(_gpu("prohibited"),)), "no new process may use it", True),
        (Surroundings(devices=(_gpu(mig=True),)), "split by MIG", False),
        (Surroundings(devices=(_gpu(),), has_mps=True), "nvidia-cuda-mps-control", True),
    ],
)
def test_each_is_said_with_what_to_type(seen: Surroundings, says: str, one_at_a_time: bool) -> None:
    (found,) = hindrances(_on_gpu(), seen)
    assert says in found.text
    assert found.one_at_a_time is one_at_a_time


def test_an_ordinary_gpu_and_a_program_on_the_cpu_have_nothing_said() -> None:
    assert hindrances(_on_gpu(), Surroundings(devices=(_gpu(),), shared_memory_bytes=64 << 20)) == []
    assert hindrances(with_loader(), Surroundings(devices=(_gpu("prohibited"),))) == []


@pytest.mark.parametrize(("mib", "fits"), [(64, False), (8192, True)])
def test_shared_memory_of_a_container_is_too_small_for_the_workers_of_two_arms(mib: int, fits: bool) -> None:
    """64 pictures of 224 x 224 are 37 MiB; four workers keep two batches each, and there are two arms: 588 MiB."""
    root = ModuleFacts(cls="ResNet", input_shapes=((64, 3, 224, 224),), input_dtypes=("float32",))
    seen = with_program(with_loader(num_workers=4), roots=(root,))
    found = hindrances(seen, Surroundings(shared_memory_bytes=mib << 20))
    assert (found == []) is fits
    if found:
        assert "--shm-size" in found[0].text
        assert "need about 588 MiB" in found[0].text
