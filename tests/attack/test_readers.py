"""Hundreds of hostile files of each kind: an answer in words, no traceback, no hang, no more than a gigabyte."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from hotloop.observe.run.origin import ORIGIN, origin
from hotloop.store.session import new_session
from tests.attack.counts import count
from tests.attack.mutated import bent, bent_values
from tests.lint.test_hostile_files import DEEP
from tests.report import rich_session

pytestmark = [pytest.mark.attack, pytest.mark.slow, pytest.mark.timeout(1500)]
LIMIT_S = 30
GIGABYTE = 1 << 30
_SOURCE = b"""import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Linear(2, 2)
for x, y in DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item()}")
"""
_PYPROJECT = b'[project]\nname = "a"\n[tool.hotloop.lint]\nselect = ["sync-in-step"]\nexclude = ["x"]\n'
_PLAN = b"""schema = 1

[[steps]]
name = "autocast_bf16"
ratio = 1.4
low = 1.3
high = 1.5
[steps.params]

[speedup]
ratio = 1.4
low = 1.3
high = 1.5

[fit]
torch_version = "2.13.0"
script = "train.py"
command = ["python", "train.py"]
[fit.machine]
"""
_BATCH = """
import json, sys, time, traceback
from pathlib import Path
from hotloop.model.errors import HotloopError
{setup}
for path in map(Path, sys.argv[1:]):
    began = time.monotonic()
    try:
        read(path)
        outcome = "read"
    except HotloopError as error:
        outcome = "refused" if error.message and error.hint else "refused without a hint"
    except BaseException as error:
        outcome = "crash " + traceback.format_exc()[-600:]
    print(json.dumps([path.name, outcome, time.monotonic() - began]), flush=True)
"""
_PLANS = "from hotloop.tune.plan.plan_file import read_plan as read"
_CONFIGS = "from hotloop.lint.check.config import read_config as read"
_SOURCES = """
from hotloop.lint.check.config import LintConfig
from hotloop.lint.check.run import lint_files
def read(path): lint_files([str(path)], LintConfig())
"""
_SESSIONS = """
import contextlib, io
from hotloop.review.report_content import report_content
from hotloop.report.html.page import page
from hotloop.report.markdown import markdown
from hotloop.report.sections.all import document
from hotloop.store.session import Session
def read(path):
    with contextlib.closing(Session(path)) as session:
        content = report_content(session)
        shown = document(content)
        markdown(shown)
        page(shown, content.manual)
"""
_TRACES = """
from hotloop.trace.ranks.study import analyze
from hotloop.report.terminal.screen import Screen
from hotloop.report.sections.trace.report import trace_document
from hotloop.report.terminal import walk
import io
def read(path):
    screen = Screen(quiet=True)
    screen.out.file = io.StringIO()
    report = analyze(path, jobs=1, window=None, limit=50, progress=lambda _: None)
    screen.show(walk.render(trace_document(report, (), 5), verbose=True))
"""


def _trace() -> bytes:
    events = [
        {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 7, "ts": 10.0 * at, "dur": 5.0, "args": args}
        for at in range(40)
        for cat, name, pid, args in (
            ("cpu_op", "aten::mm", 1, {"External id": at, "Input Dims": [[2, 2], [2, 2]]}),
            ("cuda_runtime", "cudaLaunchKernel", 1, {"External id": at, "correlation": at}),
            ("kernel", "gemm", 0, {"External id": at, "correlation": at, "stream": 7, "device": 0}),
        )
    ]
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()


def _whole(folder: Path, name: str, parts: Mapping[str, object]) -> bytes:
    """A session as `tune` leaves it, with these parts."""
    folder.mkdir(exist_ok=True)
    session = new_session(folder, name)
    for key, value in parts.items():
        session.put(key, value)
    session.close()
    return session.path.read_bytes()


def _parts() -> dict[str, object]:
    kept = {
        "observation": rich_session.observation(),
        "result": rich_session.tuning(),
        ORIGIN: origin("tune", ["a"]),
    }
    return {key: msgspec.msgpack.decode(msgspec.msgpack.encode(value)) for key, value in kept.items()}


def _session(folder: Path) -> bytes:
    return _whole(folder, "good", _parts())


def _bent_sessions(folder: Path, num: int) -> Iterator[bytes]:
    """Databases that are whole, with values in them that are not."""
    for number, parts in enumerate(bent_values(_parts(), num, seed=15)):
        yield _whole(folder, f"bent{number}", parts)


def _deep_sources() -> Iterator[bytes]:
    for text in DEEP.values():
        yield f"import torch\n{text}\n".encode()


KINDS: dict[str, tuple[int, str, str, Callable[[Path], bytes]]] = {
    "plans": (300, ".toml", _PLANS, lambda _: _PLAN),
    "pyproject files": (300, ".toml", _CONFIGS, lambda _: _PYPROJECT),
    "sources": (100, ".py", _SOURCES, lambda _: _SOURCE),
    "sessions": (100, ".sqlite", _SESSIONS, _session),
    "traces": (300, ".json", _TRACES, lambda _: _trace()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_files_are_answered_in_words(kind: str, tmp_path: Path) -> None:
    num, suffix, setup, good = KINDS[kind]
    contents = list(bent(good(tmp_path), num, seed=14))
    if kind == "sources":
        contents[: len(DEEP)] = _deep_sources()
    if kind == "sessions":  # the others are rarely a database any more
        contents[: num // 2] = _bent_sessions(tmp_path / "bent", num // 2)
    paths = []
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(content)
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", _BATCH.format(setup=setup), *paths],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S * num,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    crashed = [one for one in outcomes if one[1] not in {"read", "refused"}]
    slow = [one for one in outcomes if one[2] > LIMIT_S]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    refused = sum(one[1] == "refused" for one in outcomes)
    longest = max((one[2] for one in outcomes), default=0.0)
    note = f"{refused} refused in words, longest {longest:.1f} s, peak of all so far {peak >> 20} MiB"
    count(f"hostile {kind}", num, len(outcomes) - len(crashed) - len(slow), note)
    assert len(outcomes) == num, done.stderr[-2000:]
    assert not crashed
    assert not slow
    assert peak < GIGABYTE
