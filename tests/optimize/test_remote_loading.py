"""remote_loading: the same bytes come from a local copy that fills meanwhile, and nothing is left of it."""

from __future__ import annotations

import builtins
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch.utils.data import DataLoader

from hotloop.launch.isolation.scratch import scratch_root, sweep
from hotloop.machine.host.mounts import Mount
from hotloop.model.deep import Deep, Loading, LoadingPart, OpenedFolder
from hotloop.model.observation import Phase
from hotloop.optimize.catalogue.input.remote_loading import fetched_folder
from hotloop.optimize.catalogue.input.remote_loading import row as remote_loading
from hotloop.optimize.catalogue.input.remote_loading.fetched_folder import FetchedFolder
from hotloop.optimize.catalogue.input.remote_loading.row import RemoteLoading
from hotloop.optimize.dataset.redirected_opens import RedirectedOpens
from hotloop.optimize.optimization import DoesNotApply

from .harness import loader, observation
from .test_ram_disk import Numbers

Install = Callable[..., RedirectedOpens]


@pytest.fixture
def fetch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install the activation; Python's own functions are as before afterwards, the copies gone."""
    for module, name in ((builtins, "open"), (io, "open"), (os, "open")):
        monkeypatch.setattr(module, name, getattr(module, name))
    made: list[RedirectedOpens] = []

    def install(folder: Path, max_share: float = 0.25) -> RedirectedOpens:
        activation = RemoteLoading().activation({"folder": str(folder), "max_share": max_share})
        assert isinstance(activation, RedirectedOpens)
        made.append(activation)
        activation.on_torch()
        return activation

    yield install
    for activation in made:
        if isinstance(activation._staged, FetchedFolder):
            activation._staged.end(os.getpid())
            assert not Path(activation._staged._copy).exists()


def all_fetched(activation: RedirectedOpens) -> Path:
    """Wait until the threads are through; return the copy."""
    assert isinstance(activation._staged, FetchedFolder)
    for thread in activation._staged._threads:
        thread.join()
    return Path(activation._staged._copy)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_same_bytes_come_from_the_copy(workers: int, tmp_path: Path, fetch: Install) -> None:
    dataset = Numbers(tmp_path)
    activation = fetch(tmp_path)
    (batch,) = DataLoader(dataset, batch_size=8, num_workers=workers)
    assert torch.equal(batch, torch.arange(8).view(8, 1).expand(8, 3))
    copy = all_fetched(activation)
    on, evidence = activation.effect()
    assert on
    assert evidence == f"24 opens went to a local copy of {tmp_path}, 8 files, 7.63e-06 MiB"
    with (tmp_path / "deep" / "3.txt").open() as file:
        assert file.name == str(copy / "deep" / "3.txt")


def test_threads_fetch_what_nobody_has_opened_yet(tmp_path: Path, fetch: Install) -> None:
    Numbers(tmp_path)
    copy = all_fetched(fetch(tmp_path))
    copied = [path for path in copy.rglob("*") if path.is_file()]
    assert {path.name for path in copied} == {f"{number}.txt" for number in range(8)}
    for path in copied:
        original = tmp_path / "deep" / path.name
        assert path.stat().st_mtime_ns == original.stat().st_mtime_ns


def test_what_is_written_or_changed_is_the_original_s(tmp_path: Path, fetch: Install) -> None:
    Numbers(tmp_path)
    activation = fetch(tmp_path)
    copy = all_fetched(activation)
    name = tmp_path / "deep" / "3.txt"
    name.write_text("33")
    assert (copy / "deep" / "3.txt").read_text() == "3", "what is written goes to the original"
    assert name.read_text() == "33"
    assert (copy / "deep" / "3.txt").read_text() == "33", "copied again"
    (tmp_path / "new.txt").write_text("new")
    assert (tmp_path / "new.txt").read_text() == "new"
    name.unlink()
    with pytest.raises(FileNotFoundError):
        name.open()
    with pytest.raises(IsADirectoryError):
        (tmp_path / "deep").open()


def test_a_file_that_changes_while_it_is_copied_is_not_kept(
    tmp_path: Path, fetch: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    activation = fetch(folder)
    all_fetched(activation)
    staged = activation._staged
    assert isinstance(staged, FetchedFolder)
    name = folder / "rows.txt"
    name.write_text("old")
    copied = staged._copied

    def slowly(source: str, to: str) -> None:
        copied(source, to)
        name.write_text("longer")

    monkeypatch.setattr(staged, "_copied", slowly)
    assert staged.instead_of(name) is None
    assert list(Path(staged._copy).iterdir()) == []


def test_large_files_links_and_a_full_disk_are_left(
    tmp_path: Path, fetch: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetched_folder, "LARGEST_BYTES", 2)
    (tmp_path / "large.txt").write_text("large")
    (tmp_path / "s").write_text("s")
    (tmp_path / "link").symlink_to(tmp_path / "s")
    activation = fetch(tmp_path)
    staged = activation._staged
    assert isinstance(staged, FetchedFolder)
    for name in ("large.txt", "link"):
        assert (tmp_path / name).read_text() in {"large", "s"}
        assert staged.instead_of(tmp_path / name) is None
    assert staged.instead_of(tmp_path / "s") is not None
    assert staged.instead_of("/elsewhere") is None
    full = fetch(tmp_path, 1e-12)._staged
    assert isinstance(full, FetchedFolder)
    full._floor = float("inf")
    (tmp_path / "t").write_text("t")
    assert full.instead_of(tmp_path / "t") is None


def test_a_folder_that_is_not_there_is_said(tmp_path: Path, fetch: Install) -> None:
    on, why = fetch(tmp_path / "nowhere").effect()
    assert not on
    assert why == f"the folder {tmp_path / 'nowhere'} is not there"


def test_a_killed_program_s_copy_is_swept(tmp_path: Path) -> None:
    Numbers(tmp_path)
    program = (
        "import os, signal, sys\n"
        "from hotloop.optimize.catalogue.input.remote_loading.fetched_folder import FetchedFolder\n"
        "folder = FetchedFolder(sys.argv[1], 0.25, 2)\n"
        "copy = folder.instead_of(sys.argv[1] + '/deep/3.txt')\n"
        "print(copy, open(copy).read(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    copy, content = done.stdout.split()
    assert content == "3"
    sweep(scratch_root())  # where what waits for its end has not removed it yet
    assert not Path(copy).exists()


MOUNTS = {"/mnt": Mount("/mnt", "nfs4", "server:/data"), "/disk": Mount("/disk", "ext4", "/dev/sdb1")}


def on_mounts(folder: Path) -> Mount:
    return MOUNTS.get(f"/{folder.parts[1]}", Mount("/", "ext4", "/dev/sda1"))


def test_where_it_is_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_loading, "mount_of", on_mounts)
    part: dict[str, Any] = {"path": None, "line": None, "count_per_sample": 1.0}
    plain = Loading(
        process="train", num_processes=1, window_s=1, num_batches=9, num_samples=99, sample_s=2e-3,
        parts=(LoadingPart(kind="open", name="open", share=0.6, time_per_sample_s=4e-4, **part),
               LoadingPart(kind="transform", name="Resize", share=0.4, time_per_sample_s=3e-4, **part)),
        used_bytes_per_sample=1, read_bytes_per_sample=None, reads_per_sample=None,
        folder=OpenedFolder(path="/mnt/data", files_per_sample=1.0, bytes=None),
    )  # fmt: skip
    seen = observation(loaders=(loader(),), shares={Phase.DATA: 0.5})

    def with_loading(path: str = "/mnt/data", **changes: Any) -> Any:
        folder = OpenedFolder(path=path, files_per_sample=1.0, bytes=None)
        loading = msgspec.structs.replace(plain, folder=folder, **changes)
        return msgspec.structs.replace(seen, deep=Deep(loading=loading))

    (candidate,) = RemoteLoading().candidates(with_loading())
    assert candidate.params == {"folder": "/mnt/data"}
    assert candidate.prior == pytest.approx(1 / (1 - 0.3 + 0.3 / 5))
    slow = msgspec.structs.replace(plain.parts[0], time_per_sample_s=2e-3)
    assert RemoteLoading().candidates(with_loading("/disk/data", parts=(slow,)))
    refused = {
        "was not looked at": seen,
        r"take 0.0% of a sample's time": with_loading(parts=plain.parts[1:]),
        r"on one file system \(/, ext4\)": with_loading("/home/data"),
        "local file system, and a file takes 0.4 ms": with_loading("/disk/data"),
    }
    for reason, each in refused.items():
        with pytest.raises(DoesNotApply, match=reason):
            RemoteLoading().candidates(each)
    for params in ({"folder": "data"}, {"folder": "/data", "num_threads": 0}, {}):
        with pytest.raises(ValueError, match=r"folder is|num_threads is 0"):
            RemoteLoading().validate(params)
