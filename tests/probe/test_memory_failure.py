"""What is known of a program at the moment at which memory runs out."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.multiprocessing.spawn import ProcessRaisedException

from hotloop.probe.memory_failure import report_file
from hotloop.probe.memory_failure import words as memory_words
from hotloop.probe.memory_failure.reserve import Reserve
from hotloop.probe.memory_failure.room import host_room
from hotloop.probe.memory_failure.words import asked_bytes, says_out_of_memory
from hotloop.probe.process.config import ProbeConfig

from .conftest import with_probe

CUDA = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 39.38 GiB"
CPU = "[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes"
LIMIT_BYTES = 3 << 30
PROGRAM = """
import resource, torch
from torch import nn
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 256), nn.Tanh())
optimizer = torch.optim.Adam(model.parameters())
kept = []
for step in range(400):
    x = torch.rand(100 if step < 2 else 40_000, 256)
    out = model(x)
    loss = out.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step >= 2:
        kept.append(model(x))
"""
WORKER_PROGRAM = """
import resource, numpy, torch
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __init__(self):
        self.cache = {{}}
    def __len__(self):
        return 10_000
    def __getitem__(self, index):
        self.cache[index] = numpy.ones(4_000_000)
        return self.cache[index].mean()
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
for _ in DataLoader(Rows(), num_workers=1):
    pass
"""


OBJECTS_PROGRAM = """
import resource, torch
from torch import nn
torch.set_num_threads(1)
model = nn.Linear(64, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
history = []
def main():
    while True:
        loss = model(torch.randn(32, 64)).pow(2).mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        history.append([float(i) for i in range(20000)])
main()
"""


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (torch.OutOfMemoryError(CUDA), 5 << 29),
        (RuntimeError(CPU), 4096),
        (MemoryError("Unable to allocate 3.00 KiB for an array with shape (3, 1024)"), 3072),
        (MemoryError(), None),
        (ValueError("HIP out of memory. Tried to allocate 2.00 GiB"), 2 << 30),
        (
            ProcessRaisedException(f"\n\n-- Process 0 terminated with the following error:\n{CUDA}", 0, 1),
            5 << 29,
        ),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), None),
    ],
)
def test_an_exception_that_says_so_is_known(error: BaseException, asked: int | None) -> None:
    assert says_out_of_memory(error) is error
    assert asked_bytes(str(error)) == asked


@pytest.mark.parametrize("words", ["can't start new thread", "could not create a primitive"])
def test_words_that_have_other_causes_too_count_where_memory_is_short(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = RuntimeError(words)
    assert says_out_of_memory(error) is None
    monkeypatch.setattr(memory_words, "host_room", lambda: {"free_bytes": 1 << 20})
    assert says_out_of_memory(error) is error


@pytest.mark.parametrize(
    ("words", "device"),
    [
        ("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.1 GiB", "cuda:3"),
        ("HIP out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 191 GiB", "cuda:3"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 15.78 GiB total capacity)", "cuda:3"),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "cuda:1"),
        ("DefaultCPUAllocator: can't allocate memory", "cpu"),
    ],
)
def test_the_device_is_the_one_that_the_words_name(
    words: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may train on `cuda:3` and never make it the current device."""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert report_file._device(words) == device


def test_the_cause_of_an_exception_is_looked_at() -> None:
    cause = MemoryError()
    outer = ValueError("the epoch failed")
    outer.__cause__ = cause
    assert says_out_of_memory(outer) is cause
    assert says_out_of_memory(ValueError("shape")) is None
    assert says_out_of_memory(RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED")) is None
    assert says_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied")) is None


def test_the_host_has_a_limit() -> None:
    room = host_room()
    assert room["limit_bytes"] >= room["free_bytes"] >= 0
    assert room["resident_bytes"] > 0


def _failed(tmp_path: Path, *, follow: bool) -> dict[str, Any]:
    return _run(tmp_path, PROGRAM.format(limit=LIMIT_BYTES), follow=follow)


def _run(tmp_path: Path, program: str, *, follow: bool) -> dict[str, Any]:
    folder = tmp_path / "probe"
    environment = with_probe(folder, ProbeConfig(folder=str(folder), follow_memory=follow))
    script = tmp_path / "train.py"
    script.write_text(program)
    ended = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stderr
    (file,) = folder.glob("out-of-memory-*.json")
    value: dict[str, Any] = json.loads(file.read_text())
    return value


@pytest.mark.slow
def test_a_followed_run_knows_the_line_that_holds_the_memory(tmp_path: Path) -> None:
    value = _failed(tmp_path, follow=True)
    text = PROGRAM.splitlines()
    first, second = sorted(text[line["line"] - 1] for line in value["lines"][:2])
    assert "kept.append(model(x))" in first
    assert "x = torch.rand" in second, "the graphs that are kept keep their inputs, too"
    assert value["asked_bytes"] == 4 * 40_000 * 256
    others = {
        name: size for name, size in value["by_class"].items() if name not in {"earlier_steps", "other"}
    }
    assert value["by_class"]["earlier_steps"] > 2 * sum(others.values())
    assert value["phase"] in {"forward", "backward"}
    assert value["host"]["limit_bytes"] == LIMIT_BYTES
    (kept,) = (one for one in value["holders"] if one["name"] == "kept")
    assert kept["keeps_graph"]
    _opens_in_the_viewer(next((tmp_path / "probe").glob("memory-snapshot-*.pickle")), value)


def _opens_in_the_viewer(path: Path, value: dict[str, Any]) -> None:
    from torch.cuda import _memory_viz

    seen = pickle.loads(path.read_bytes())
    alive = sum(segment["allocated_size"] for segment in seen["segments"])
    assert alive == pytest.approx(sum(value["by_class"].values()), rel=0.01)
    frames = [frame["filename"] for segment in seen["segments"] for frame in segment["frames"]]
    assert any(name.endswith("train.py") for name in frames)
    assert _memory_viz.trace_plot(seen)
    assert _memory_viz.segsum(seen)


@pytest.mark.slow
def test_a_worker_s_cache_is_named_though_it_holds_no_tensor(tmp_path: Path) -> None:
    found = _run(tmp_path, WORKER_PROGRAM.format(limit=LIMIT_BYTES), follow=True)
    assert found["in_worker"]
    first = found["holders"][0]
    assert (first["name"], first["function"], first["kind"]) == ("self.cache", "Rows", "dict")
    assert first["held_bytes"] > 500 << 20
    assert any(line[2] == "__getitem__" for line in found["stack"])


@pytest.mark.slow
def test_a_followed_run_follows_the_program_s_threads(tmp_path: Path) -> None:
    head, loop = PROGRAM.format(limit=LIMIT_BYTES).split("kept = []")
    body = "".join(f"    {line}\n" for line in ("kept = []" + loop).splitlines())
    ends = "thread = threading.Thread(target=train)\nthread.start(); thread.join(); raise SystemExit(1)"
    value = _run(tmp_path, f"import threading\n{head}def train():\n{body}{ends}", follow=True)
    assert value["tracked"]
    assert value["by_class"]["earlier_steps"] > 0.3 * sum(value["by_class"].values())
    assert any(line["function"] == "train" for line in value["lines"])
    assert "kept" in [one["name"] for one in value["holders"]]


@pytest.mark.slow
def test_a_run_that_was_not_followed_knows_what_was_asked_and_where(tmp_path: Path) -> None:
    value = _failed(tmp_path, follow=False)
    assert value["asked_bytes"] == 4 * 40_000 * 256
    assert value["stack"]
    assert not value["lines"]
    assert value["by_class"]["other"] > 0.9 * sum(value["by_class"].values())


@pytest.mark.slow
def test_python_s_own_objects_fill_the_memory_to_the_last_byte_and_it_is_told(tmp_path: Path) -> None:
    value = _run(tmp_path, OBJECTS_PROGRAM.format(limit=2 << 30), follow=False)
    assert value["error"] == "MemoryError"
    assert value["stack"][-1][2] == "<module>"
    assert "history" in [one["name"] for one in value["holders"]]


def test_where_even_the_looks_need_more_than_there_is_the_rest_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(*_: Any) -> Any:
        raise MemoryError

    for look in ("holders", "held_now", "host_room"):
        monkeypatch.setattr(report_file, look, short)
    report_file.write_failure(tmp_path, MemoryError("Unable to allocate 3.00 KiB"), [], None, Reserve())
    (file,) = tmp_path.glob("out-of-memory-*.json")
    assert json.loads(file.read_text())["asked_bytes"] == 3072
