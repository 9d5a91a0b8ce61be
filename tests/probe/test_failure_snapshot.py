"""The snapshot that a followed run leaves: of the host what was followed, of a device torch's own history."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from hotloop.probe.memory_failure import failure_snapshot
from hotloop.probe.memory_failure.failure_snapshot import FailureSnapshot, of_storages
from hotloop.probe.memory_failure.live_storages import LiveStorages
from hotloop.probe.record.viewer_snapshot import snapshot_path


def _saw(storages: LiveStorages, tensor: Any) -> None:
    """Be the mode, whose caller's lines count."""
    storages.saw(tensor, "aten.zeros.default", ())


def test_what_is_alive_and_what_was_released_is_in_it() -> None:
    storages = LiveStorages()
    kept = torch.zeros(1000)
    _saw(storages, kept)
    gone = torch.zeros(500)
    _saw(storages, gone)
    del gone
    found = of_storages(storages, "cpu")
    assert [segment["allocated_size"] for segment in found["segments"]] == [4000]
    actions = [(event["action"], event["size"]) for event in found["device_traces"][0]]
    assert actions.count(("alloc", 4000)) == 1
    assert actions.count(("free_completed", 2000)) == 1
    frames = found["segments"][0]["blocks"][0]["frames"]
    assert frames[0]["filename"] == __file__, "the innermost line first, as torch has it"
    addresses = {event["addr"] for event in found["device_traces"][0]}
    assert len(addresses) == 2


class _History:
    def __init__(self) -> None:
        self.started = 0

    def start(self) -> None:
        self.started += 1

    def dump(self, path: Path) -> None:
        path.write_bytes(pickle.dumps({"segments": [], "device_traces": []}))


def test_a_device_s_history_begins_when_it_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history: Any = _History()
    in_use = False
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: in_use)
    monkeypatch.setattr(failure_snapshot, "memory_history", lambda: history)
    last = FailureSnapshot(LiveStorages())
    last.look()
    last.write(tmp_path, "cuda:0")
    assert history.started == 0
    assert not list(tmp_path.iterdir())
    in_use = True
    last.look()
    last.look()
    assert history.started == 1
    last.write(tmp_path, "cuda:0")
    (path,) = tmp_path.iterdir()
    assert path.name == snapshot_path(tmp_path, int(path.stem.rpartition("-")[2])).name
