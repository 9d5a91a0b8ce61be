"""The memory of a device beside its tensors, and pinned buffers: from the probe to a finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.observation import Memory
from hotloop.observe.decode.processes import device_memory, pinned_bytes
from hotloop.probe.device.device import Cuda
from hotloop.probe.device.memory_history import MAX_ENTRIES, MemoryHistory
from hotloop.report.content.device_memory import device_memory as told
from tests.diagnose.observations import FINE
from tests.simulated_device import SimulatedCuda

GIB = 1 << 30


def _facts(cuda: SimulatedCuda, steps: int = 9) -> dict[str, Any]:
    device = Cuda(cuda, lambda: 0)
    return {"steps": steps, "device_memory": device.memory(), "pinned_bytes": device.pinned_bytes()}


def test_slack_and_what_is_outside_the_allocator_add_up_to_what_the_driver_says() -> None:
    cuda = SimulatedCuda(total_gib=40)
    memory = cuda.memories[0]
    memory.allocate(30 * GIB)
    memory.release(12 * GIB)
    memory.allocate(5 * GIB, pid=7)
    (row,) = device_memory({1: _facts(cuda)})
    assert row.used_bytes == memory.total - memory.free
    assert (row.reserved_bytes, row.allocated_bytes, row.slack_bytes) == (30 * GIB, 30 * GIB, 0)
    assert row.inactive_split_bytes == 12 * GIB
    assert row.beside_bytes == 6 * GIB, "two contexts of half a GiB, and the other program's memory"


def test_a_full_device_that_asked_again_is_a_finding_and_one_with_room_is_none() -> None:
    cuda = SimulatedCuda(total_gib=40)
    cuda.memories[0].allocate(20 * GIB)
    seen = _diagnosed(cuda)
    assert "near-memory-limit" not in seen
    cuda.memories[0].release(15 * GIB)
    cuda.memories[0].give_back()
    assert "asked again 1 time" in _diagnosed(cuda)["near-memory-limit"]


def test_pinned_buffers_of_processes_that_train_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimulatedCuda()
    cuda.pinned_bytes = GIB
    processes = {1: _facts(cuda), 2: _facts(cuda), 3: _facts(cuda, steps=0)}
    assert pinned_bytes(processes) == 2 * GIB
    assert list(told(_memory(cuda)))[-1] == "1.00 GiB of pinned buffers on the host"
    monkeypatch.delattr(SimulatedCuda, "host_memory_stats")
    assert Cuda(cuda, lambda: 0).pinned_bytes() is None


class _Torch:
    """The part of `torch.cuda.memory` that keeps a history."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def _record_memory_history(self, **options: Any) -> None:
        self.calls.append(options)

    def _dump_snapshot(self, path: str) -> None:
        Path(path).write_bytes(b"snapshot")


def test_a_history_of_the_program_s_own_is_left_alone(tmp_path: Path) -> None:
    ours, theirs = _Torch(), _Torch()
    for torch, recorded in ((ours, False), (theirs, True)):
        history = MemoryHistory(torch, recorded=recorded)
        history.start()
        history.dump(tmp_path / "snapshot.pickle")
        history.stop()
    assert ours.calls == [{"stacks": "python", "max_entries": MAX_ENTRIES}, {"enabled": None}]
    assert theirs.calls == []


def _memory(cuda: SimulatedCuda) -> Memory:
    processes = {1: _facts(cuda)}
    return Memory(
        peak_bytes=1,
        device="cuda",
        method="",
        devices=device_memory(processes),
        pinned_bytes=pinned_bytes(processes),
    )


def _diagnosed(cuda: SimulatedCuda) -> dict[str, str]:
    seen = msgspec.structs.replace(FINE, memory=_memory(cuda))
    return {finding.code: finding.evidence for finding in diagnose(seen).findings}
