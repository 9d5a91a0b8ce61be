"""ram_disk: the same bytes are read from a copy in memory, and nothing is left of it."""

from __future__ import annotations

import builtins
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hotloop.launch.isolation.scratch import memory_root
from hotloop.model.deep import Deep, Loading, LoadingPart, OpenedFolder
from hotloop.model.observation import Phase
from hotloop.optimize.catalogue.input.ram_disk.row import RamDisk
from hotloop.optimize.catalogue.input.ram_disk.staged_folder import StagedFolder
from hotloop.optimize.dataset.redirected_opens import RedirectedOpens
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.optimization import DoesNotApply

from .harness import loader, observation

pytestmark = pytest.mark.skipif(memory_root() is None, reason="no file system in memory here")


class Numbers(Dataset[Any]):
    """A file a sample, opened in every way that Python has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "deep").mkdir()
        for number in range(8):
            (folder / "deep" / f"{number}.txt").write_text(str(number))

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        name = self.folder / "deep" / f"{index}.txt"
        descriptor = os.open(name, os.O_RDONLY)
        read = os.read(descriptor, 9)
        os.close(descriptor)
        with open(str(name)) as file, name.open("rb") as other:
            return torch.tensor([int(file.read()), int(other.read()), int(read)])


Install = Callable[..., RedirectedOpens]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install the activation; Python's own functions are as before afterwards, the copies gone."""
    for module, name in ((builtins, "open"), (io, "open"), (os, "open")):
        monkeypatch.setattr(module, name, getattr(module, name))
    made: list[RedirectedOpens] = []

    def install(folder: Path, max_share: float = 0.25) -> RedirectedOpens:
        activation = RamDisk().activation({"folder": str(folder), "max_share": max_share})
        assert isinstance(activation, RedirectedOpens)
        made.append(activation)
        activation.on_torch()
        return activation

    yield install
    for activation in made:
        if isinstance(activation._staged, StagedFolder):
            activation._staged.end(os.getpid())


@pytest.mark.parametrize("workers", [0, 1])
def test_the_same_bytes_come_from_memory(workers: int, tmp_path: Path, stage: Install) -> None:
    dataset = Numbers(tmp_path)
    activation = stage(tmp_path)
    (batch,) = DataLoader(dataset, batch_size=8, num_workers=workers)
    assert torch.equal(batch, torch.arange(8).view(8, 1).expand(8, 3))
    on, evidence = activation.effect()
    assert on
    assert evidence.startswith("24 opens went to a copy of")
    with (tmp_path / "deep" / "3.txt").open() as file:
        assert file.name.startswith("/dev/shm/")


def test_what_is_written_or_changed_is_the_original(tmp_path: Path, stage: Install) -> None:
    Numbers(tmp_path)
    stage(tmp_path)
    name = tmp_path / "deep" / "3.txt"
    name.write_text("33")
    (tmp_path / "new.txt").write_text("new")
    assert name.read_text() == "33"
    assert (tmp_path / "new.txt").read_text() == "new"
    name.unlink()
    with pytest.raises(FileNotFoundError):
        name.open()


@pytest.mark.parametrize(
    ("share", "folder", "reason"),
    [(1e-12, ".", "are allowed"), (0.25, "nowhere", "is not there, or holds no files")],
)
def test_what_does_not_fit_is_left_where_it_is(
    share: float, folder: str, reason: str, tmp_path: Path, stage: Install
) -> None:
    dataset = Numbers(tmp_path)
    activation = stage(tmp_path / folder, share)
    assert int(dataset[5][0]) == 5
    on, why = activation.effect()
    assert not on
    assert reason in why


def test_half_of_the_memory_file_system_is_left_to_loader_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sample").write_bytes(bytes(60))
    for free, fits in ((100, False), (120, True)):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        if fits:
            StagedFolder(str(tmp_path), 1.0).end(os.getpid())
            continue
        with pytest.raises(CannotKeep, match="more than half of the"):
            StagedFolder(str(tmp_path), 1.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_copy_goes_with_a_program_that_a_signal_ends(number: signal.Signals, tmp_path: Path) -> None:
    Numbers(tmp_path)
    program = (
        "import os, sys\n"
        "from hotloop.optimize.catalogue.input.ram_disk.staged_folder import StagedFolder\n"
        "copy = StagedFolder(sys.argv[1], 0.25)._copy\n"
        "print(copy, os.path.exists(copy / 'deep' / '3.txt'), flush=True)\n"
        f"os.kill(os.getpid(), {number.value})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -number
    copy, there = done.stdout.split()
    assert there == "True"
    for _ in range(500):
        if not Path(copy).exists():
            break
        time.sleep(0.02)
    assert not Path(copy).exists()


def test_where_it_is_proposed() -> None:
    part: dict[str, Any] = {"path": None, "line": None, "count_per_sample": 1.0, "time_per_sample_s": 1e-3}
    plain = Loading(
        process="train", num_processes=1, window_s=1, num_batches=9, num_samples=99, sample_s=2e-3,
        parts=(LoadingPart(kind="open", name="open", share=0.6, **part),
               LoadingPart(kind="transform", name="Resize", share=0.4, **part)),
        used_bytes_per_sample=1, read_bytes_per_sample=None, reads_per_sample=None,
        folder=OpenedFolder(path="/mnt/data", files_per_sample=1.0, bytes=1 << 20),
    )  # fmt: skip
    seen = observation(loaders=(loader(),), shares={Phase.DATA: 0.5})

    def with_loading(**changes: Any) -> Any:
        loading = msgspec.structs.replace(plain, **changes)
        return msgspec.structs.replace(seen, deep=Deep(loading=loading))

    (candidate,) = RamDisk().candidates(with_loading())
    assert candidate.params == {"folder": "/mnt/data"}
    assert candidate.prior == pytest.approx(1 / (1 - 0.3 + 0.15))
    refused = {
        "was not looked at": seen,
        "no file is opened": with_loading(folder=None),
        "is in memory already": with_loading(
            folder=OpenedFolder(path="/dev/shm/x", files_per_sample=1, bytes=1)
        ),
        "more files than could be counted": with_loading(
            folder=OpenedFolder(path="/mnt/data", files_per_sample=1, bytes=None)
        ),
        r"take 0.0% of a sample's time": with_loading(parts=plain.parts[1:]),
    }
    for reason, each in refused.items():
        with pytest.raises(DoesNotApply, match=reason):
            RamDisk().candidates(each)
    with pytest.raises(ValueError, match="from the root on"):
        RamDisk().validate({"folder": "data"})
