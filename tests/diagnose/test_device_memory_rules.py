"""Rules of full devices and full hosts: what they say, and where they are silent."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.memory_limit import memory_limit
from hotloop.model.finding import Finding, Severity
from hotloop.model.monitors import Monitor, Monitors
from hotloop.model.observation import Memory, Observation
from hotloop.model.tree_memory import TreeMemory
from tests.diagnose.device_memory_cases import CASES, GIB, SILENT, device, growing_workers, on_device, workers
from tests.diagnose.observations import observed, with_program


def _found(observation: Observation) -> dict[str, Finding]:
    return {finding.code: finding for finding in diagnose(observation).findings}


@pytest.mark.parametrize("code", CASES)
def test_the_pattern_is_found(code: str) -> None:
    assert code in _found(CASES[code])


@pytest.mark.parametrize("code", SILENT)
def test_it_is_silent_where_the_pattern_is_not(code: str) -> None:
    assert code not in _found(SILENT[code])


def test_an_allocator_that_had_to_ask_again_is_full_whatever_the_figures() -> None:
    finding = _found(on_device(device(20.0, 19.9, num_retries=3)))["near-memory-limit"]
    assert "asked again 3 times" in finding.evidence
    assert "20.0 GiB by torch's allocator, 512 MiB outside it" in finding.evidence


def test_fragmentation_is_told_with_the_rests_of_split_blocks() -> None:
    finding = _found(CASES["fragmented-memory"])["fragmented-memory"]
    assert "17.0 GiB of slack, at most 8.50 GiB in rests of split blocks" in finding.evidence
    assert finding.optimization == "allocator_settings"


def test_on_rocm_no_setting_of_cudas_is_advised() -> None:
    """`tune` refuses it there, too: its segments do not grow."""
    finding = _found(with_program(CASES["fragmented-memory"], hip_version="6.4"))["fragmented-memory"]
    assert "PYTORCH_CUDA_ALLOC_CONF" not in finding.advice
    assert finding.optimization is None


def test_a_host_is_full_of_all_its_processes() -> None:
    tree = TreeMemory(peak_bytes=15 * GIB, method="PSS", num_processes=9)
    seen = observed(memory=Memory(peak_bytes=2 * GIB, device="cpu", method="", tree=tree))
    assert "15.0 GiB is 94% of 16.0 GiB" in _found(seen)["near-memory-limit"].evidence


def test_copies_that_the_machine_has_no_room_for_are_a_warning() -> None:
    room, none = (_found(workers(400e6, left=left))["memory-copied-per-worker"] for left in (8e9, 1e9))
    assert (room.severity, none.severity) == (Severity.INFO, Severity.WARNING)
    assert "3,000,000 entries, 381 MiB of Python objects" in room.evidence
    assert "1.49 GiB in all" in room.evidence


def test_growing_workers_are_told_with_the_container_that_gains_as_much() -> None:
    named, other = (_found(growing_workers(size))["memory-growing"] for size in (100_000.0, 10.0))
    assert "the loader workers together: 30.5 MiB/s" in named.evidence
    assert "the dict self.cache gains 1 entry a sample, Python objects" in named.evidence
    assert "self.cache" not in other.evidence


def test_a_device_is_full_when_it_is_and_not_when_the_machine_s_smallest_would_be() -> None:
    """A small card for the screen beside the one that trains."""
    times = tuple(at / 2 for at in range(12))
    samples = tuple(20e9 + 16e6 * at for at in range(12))
    used = Monitor(mean=20e9, p95=20e9, max=20e9, samples=samples)
    alone = Monitor(mean=0.0, p95=0.0, max=0.0, samples=(0.0,) * 12)
    metrics = {'gpu_memory_used_bytes{gpu="1"}': used, 'gpu_foreign_num_processes{gpu="1"}': alone}
    monitors = Monitors(interval_s=0.5, begin_s=0.0, end_s=6.0, times_s=times, metrics=metrics)
    cards = [{"name": "T400", "memory_bytes": 4 * GIB}, {"name": "A100", "memory_bytes": 40 * GIB}]
    seen = with_program(on_device(device(18.0, 18.0)), device="cuda")
    seen = msgspec.structs.replace(seen, monitors=monitors, machine={**seen.machine, "accelerators": cards})
    assert "at this rate memory is full in 12 minutes" in _found(seen)["memory-growing"].evidence
    assert memory_limit(seen) == 40 * GIB


def test_devices_on_which_only_others_work_are_none_of_the_program_s() -> None:
    """A shared machine: device 0 is the program's and idles, device 1 is somebody's, busy and hot."""

    def _always(value: float) -> Monitor:
        return Monitor(mean=value, p95=value, max=value, samples=(value,))

    metrics = {
        'gpu_own_num_processes{gpu="0"}': _always(1.0),
        'gpu_own_num_processes{gpu="1"}': _always(0.0),
        'gpu_utilization_ratio{gpu="0"}': _always(0.2),
        'gpu_utilization_ratio{gpu="1"}': _always(1.0),
        'gpu_throttled_ratio{gpu="1",reason="hardware thermal slowdown"}': _always(1.0),
    }
    monitors = Monitors(interval_s=0.5, begin_s=0.0, end_s=1.0, times_s=(0.5,), metrics=metrics)
    found = _found(msgspec.structs.replace(with_program(device="cuda"), monitors=monitors))
    assert "the busiest GPU ran a kernel 20% of the time" in found["idle-device"].evidence
    assert "throttled-device" not in found
