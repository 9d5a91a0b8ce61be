"""A process that runs already is looked at from outside: it goes on, and what cannot be seen is said."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.cli.app import run
from hotloop.model.errors import HotloopError
from hotloop.model.observation import Phase
from hotloop.observe.attach import py_spy
from hotloop.observe.attach.frames import phase_of, read_frame
from hotloop.observe.attach.look import look

TRAIN = """\
import sys, torch
from torch import nn

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 256)
print("trains", flush=True)
for step in range(10**9):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 0:
        print("goes on", flush=True)
"""
TORCH = "/usr/lib/python3/site-packages/torch"
USER = "<module> (/work/train.py:9)"
FORWARD = f"Module._call_impl ({TORCH}/nn/modules/module.py:1789)"
BACKWARD = f"_engine_run_backward ({TORCH}/autograd/graph.py:979)"
STEP = f"SGD.step ({TORCH}/optim/sgd.py:120)"
NEXT = f"_BaseDataLoaderIter.__next__ ({TORCH}/utils/data/dataloader.py:725)"
FETCH = f"_MapDatasetFetcher.fetch ({TORCH}/utils/data/_utils/fetch.py:54)"


@pytest.fixture
def training(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "train.py").write_text(TRAIN)
    process = subprocess.Popen([sys.executable, "train.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "trains\n"
    assert process.stdout.readline() == "goes on\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_running_process_is_looked_at_and_goes_on(
    training: subprocess.Popen[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["observe", "--pid", str(training.pid), "--seconds", "2s", "--json", "seen.json"]) == 0
    out = capsys.readouterr().out
    assert training.poll() is None
    assert re.search("of the training thread's time goes to (forward|backward)", out), out
    assert "train.py:12" in out
    assert "steps, memory, operators, call sites" in out.partition("not measured")[2]
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["step"] is None
    assert {sample["phase"] for sample in seen["deep"]["host"]["samples"]} >= {"forward", "backward"}
    assert seen["command"] == [sys.executable, "train.py"]
    (page,) = (tmp_path / ".hotloop").glob("*.html")
    assert "outside" in page.read_text()


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        ([USER, FORWARD], Phase.FORWARD),
        ([USER, f"Tensor.backward ({TORCH}/_tensor.py:623)", BACKWARD], Phase.BACKWARD),
        ([USER, BACKWARD, FORWARD], Phase.BACKWARD),
        ([USER, STEP], Phase.OPTIMIZER),
        ([USER, STEP, "closure (/work/train.py:4)", FORWARD], Phase.FORWARD),
        ([USER, f"StepLR.step ({TORCH}/optim/lr_scheduler.py:5)"], Phase.OTHER),
        ([USER, NEXT, FETCH, "D.__getitem__ (/work/data.py:3)", FORWARD], Phase.DATA),
        ([USER, f"all_reduce ({TORCH}/distributed/distributed_c10d.py:7)"], Phase.COMMUNICATION),
        ([USER, "log (/work/train.py:40)"], Phase.OTHER),
    ],
)
def test_frames_tell_the_phase(words: list[str], phase: Phase) -> None:
    assert phase_of([read_frame(word) for word in words]) is phase


def test_of_several_ranks_one_is_shown_with_its_own_workers() -> None:
    """The other rank was an `other thread`, and what it loaded itself a loader worker's."""
    launcher = 'process 1:"torchrun train.py"'
    first, second, worker = (f'process {pid}:"python train.py"' for pid in (2, 3, 4))
    main = "thread (9): MainThread"
    loop = f"_worker_loop ({TORCH}/utils/data/_utils/worker.py:300)"
    stacks = [
        ((launcher, first, main, USER, BACKWARD), 90),
        (
            (
                launcher,
                first,
                'process 5:"python train.py"',
                main,
                USER,
                loop,
                FETCH,
                "D.get (/work/data.py:3)",
            ),
            7,
        ),
        ((launcher, second, main, USER, BACKWARD), 40),
        ((launcher, second, main, USER, NEXT, FETCH, "D.get (/work/data.py:3)"), 50),
        ((launcher, second, worker, main, USER, loop, FETCH, "D.get (/work/data.py:3)"), 30),
    ]
    seen = look(1, 2.0, lambda *_: stacks)
    assert seen.deep is not None
    assert seen.deep.host is not None
    assert {(one.process, one.phase): one.num for one in seen.deep.host.samples} == {
        ("train", "backward"): 90,
        ("worker", None): 7,
    }
    (gap,) = [gap for gap in seen.coverage if gap.what == "ranks"]
    assert gap.why == "2 processes train there, and process 2 is shown; --pid takes any of them"


def test_the_training_thread_is_found_among_processes_and_workers() -> None:
    head = 'process 1:"torchrun train.py"'
    trainer, worker = 'process 2:"python train.py"', 'process 3:"python train.py"'
    main = "thread (9): MainThread"
    idle = "wait (/usr/lib/python3.11/threading.py:331)"
    loop = f"_worker_loop ({TORCH}/utils/data/_utils/worker.py:300)"
    stacks = [
        ((head, main, "launch (/usr/lib/python3/site-packages/torch/run.py:5)"), 100),
        ((trainer, main, USER, FORWARD), 30),
        ((trainer, main, USER, BACKWARD), 60),
        ((trainer, "thread (10): Thread-1", idle), 90),
        ((worker, main, USER, loop, FETCH, "D.__getitem__ (/work/data.py:3)"), 50),
        ((worker, main, USER, loop, idle), 40),
    ]
    host = look(1, 2.0, lambda *_: stacks).deep
    assert host is not None
    assert host.host is not None
    seen = {(sample.process, sample.phase): sample.num for sample in host.host.samples}
    assert seen == {
        ("train", "forward"): 30,
        ("train", "backward"): 60,
        ("worker", None): 50,
        ("thread", None): 100,
    }
    assert host.host.num_steps is None


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (
            "Permission Denied: Try running again",
            "may not read the memory of process 7 (ptrace)",
            "SYS_PTRACE",
        ),
        ("Error: No python processes found in process 7", "No python processes found", "Python process"),
    ],
)
def test_a_refusal_says_what_to_do(said: str, message: str, hint: str) -> None:
    refused = py_spy._refused(7, said)
    assert message in refused.message
    assert hint in refused.hint


def test_wrong_use_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--pid", "1", "train.py"], ["--pid", "1", "--steps", "3"], []):
        assert run(["observe", *words]) == 2
    with pytest.raises(HotloopError, match="there is no process"):
        look(2**22 + 1, 1.0)
    assert "--pid" in capsys.readouterr().err
