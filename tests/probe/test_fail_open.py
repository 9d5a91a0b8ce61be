"""Whatever of ours fails, the program goes on, and the records say what is missing."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.observe.decode.processes import read_processes
from hotloop.probe.control.control_page import LOST, ControlPage
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record.events import Kind, begin, end
from hotloop.probe.record.recorder import FLUSH_LEN, Recorder

from .conftest import RunProgram, with_probe

_TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
{sabotage}
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = 0
for epoch in range(3):
    for (inputs,) in DataLoader(TensorDataset(torch.ones(16, 4)), batch_size=4):
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
        steps += 1
torch.save(model, "model.pt")
print("steps", steps)
"""

# Each hook point's own code, replaced by something that raises; and where the notes must name it.
_SABOTAGES = {
    "every mark": (
        "from hotloop.probe.record.recorder import Recorder\n"
        "import hotloop.probe.hook_points.forward as f, gc\n"
        "probe = next(o for o in gc.get_objects() if type(o).__name__ == 'Probe')\n"
        "probe.recorder.mark = probe.recorder.append = lambda code: 1 / 0",
        {"record:data", "record:iterator", "record:backward", "record:optimizer"},
    ),
    "the thread check": (
        "from hotloop.probe.record.recorder import Recorder\n"
        "Recorder.own_thread = Recorder.training_thread = lambda self: 1 / 0",
        {"record:backward", "record:optimizer"},
    ),
    "the step boundary": (
        "from hotloop.probe.control.step_boundary import Boundary\nBoundary._step = lambda self: 1 / 0",
        {"boundary"},
    ),
    "facts of loaders": (
        "import hotloop.probe.hook_points.loader as l\nl._describe = lambda *a: 1 / 0",
        {"loader.facts"},
    ),
    "facts of optimizers": (
        "import hotloop.probe.hook_points.optimizer as o\no._describe = lambda *a: 1 / 0",
        {"record:optimizer"},
    ),
    "the search for roots": (
        "import hotloop.probe.hook_points.forward as f\nf.Root = lambda *a: 1 / 0",
        {"root.discover"},
    ),
    "facts of roots": (
        "import hotloop.probe.hook_points.root as r\nr.describe_root = lambda *a, **k: 1 / 0",
        {"record:forward"},
    ),
    "the line of the caller": (
        "import hotloop.probe.hook_points.loader as l, hotloop.probe.hook_points.optimizer as o\n"
        "l.user_line = o.user_line = lambda *a: 1 / 0",
        {"loader.facts", "optimizer.facts"},
    ),
}


# What torch imports at the first step would be imported again in each fork.
_ALL = """
import json, os, sys
import torch, torch._dynamo
sabotages = json.loads(sys.stdin.read())
for name, (sabotage, program) in sabotages.items():
    child = os.fork()
    if child == 0:
        sys.stdout.flush()
        exec(compile(program, name, "exec"), {"__name__": "__main__"})
        sys.exit(0)
    print(child, os.waitpid(child, 0)[1], name, flush=True)
"""


@pytest.fixture(scope="module")
def sabotaged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, list[dict[str, str]]]]:
    """Each sabotage in a fork of one program, to import torch once: its exit status and what was noted."""
    folder = tmp_path_factory.mktemp("sabotaged")
    programs = {
        name: (sabotage, _TRAIN.format(sabotage=sabotage)) for name, (sabotage, _) in _SABOTAGES.items()
    }
    done = subprocess.run(
        [sys.executable, "-c", _ALL],
        input=json.dumps(programs),
        env=with_probe(folder / "probe"),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("steps 12\n") == len(_SABOTAGES), done.stderr
    processes = read_processes(folder / "probe")
    lines = [line.split(" ", 2) for line in done.stdout.splitlines() if not line.startswith("steps")]
    return {name: (status, processes[int(pid)]["notes"]) for pid, status, name in lines}


@pytest.mark.parametrize("name", _SABOTAGES)
def test_the_program_goes_on_when_a_hook_point_fails(
    sabotaged: dict[str, tuple[str, list[dict[str, str]]]], name: str
) -> None:
    status, notes = sabotaged[name]
    assert status == "0"
    places = [note["where"] for note in notes]
    assert _SABOTAGES[name][1] <= set(places)
    assert len(places) == len(set(places)), "a failure at every step is noted once"


def test_a_program_goes_on_without_a_probe_that_cannot_start(run_probed: RunProgram, tmp_path: Path) -> None:
    done = run_probed(
        _TRAIN.format(sabotage=""), ProbeConfig(folder=str(tmp_path / "no" / "such" / "folder"))
    )
    assert done.stdout == "steps 12\n"
    assert done.returncode == 0


def test_a_full_disk_ends_the_records_and_not_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(tmp_path)
    recorder.mark(begin(Kind.FORWARD))
    recorder.mark(end(Kind.FORWARD))

    def full(descriptor: int, raw: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    recorder.flush()
    recorder.mark(begin(Kind.FORWARD))
    recorder.flush()
    assert recorder.lost == "recording ended: No space left on device"


def test_a_disk_that_takes_a_part_gets_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path)
    for _ in range(4):
        recorder.mark(begin(Kind.FORWARD))
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, raw: write(descriptor, raw[:5]))
    recorder.flush()
    assert (tmp_path / f"events-{os.getpid()}.bin").stat().st_size == 4 * 8


@pytest.mark.parametrize(("trains", "written"), [(True, 3 * FLUSH_LEN), (False, 0)])
def test_what_a_program_prints_between_steps_does_not_fill_its_memory(
    tmp_path: Path, trains: bool, written: int
) -> None:
    recorder = Recorder(tmp_path)
    recorder.thread = 1 if trains else 0
    for _ in range(3 * FLUSH_LEN + 1):
        if recorder.has_room():
            recorder.mark(begin(Kind.LOG))
    file = tmp_path / f"events-{os.getpid()}.bin"
    assert (file.stat().st_size // 8 if file.exists() else 0) == written


def test_a_process_says_on_the_control_page_that_its_records_ended(
    run_probed: RunProgram, tmp_path: Path
) -> None:
    sabotage = (
        "import errno, os\n"
        "from hotloop.probe.record.recorder import Recorder\n"
        "def full(self, raw): raise OSError(errno.ENOSPC, 'full')\n"
        "Recorder._write = full"
    )
    done = run_probed(_TRAIN.format(sabotage=sabotage))
    assert done.stdout == "steps 12\n"
    page = ControlPage(tmp_path / "probe" / "control")
    assert [row[LOST] for row in page.rows()] == [1]
    page.close()
