"""`hotloop observe` on a program that decodes images: what its samples' time goes to, and the finding that names it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from hotloop.model.observation import Observation
from hotloop.store.session import find_session

from .conftest import Observed, hotloop, run_observe

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, time
import numpy as np, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)

class Compose:
    def __init__(self, transforms):
        self.transforms = transforms
    def __call__(self, value):
        for transform in self.transforms:
            value = transform(value)
        return value

class Sharpen:
    def __call__(self, value):  # the slow one
        time.sleep(0.01)
        return value * 2

class Rows(Dataset):
    def __init__(self):
        self.transform = Compose([Sharpen(), torch.from_numpy])
        np.save("rows.npy", np.ones((64, 8), dtype=np.float32))
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return self.transform(np.load("rows.npy")[index])

loader = DataLoader(Rows(), batch_size=4, num_workers=int(sys.argv[1]))
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while True:
    for rows in loader:
        optimizer.zero_grad()
        model(rows).sum().backward()
        optimizer.step()
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Observed:
    folder = tmp_path_factory.mktemp("loading")
    (folder / "project").mkdir()
    return run_observe(
        folder / "project",
        folder,
        PROGRAM,
        "--steps",
        "20",
        "--verbose",
        command=("train.py", "1"),
        deep=True,
    )


def test_the_worker_s_parts_are_in_the_observation(seen: Observed) -> None:
    loading: dict[str, Any] = seen.seen["deep"]["loading"]
    assert (loading["process"], loading["num_processes"]) == ("worker", 1)
    shares = {(part["kind"], part["name"]): part["share"] for part in loading["parts"]}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert max(shares, key=lambda key: shares[key]) == ("transform", "Sharpen")
    assert {"read", "collate", "hand_over", "own"} <= {kind for kind, _ in shares}
    assert loading["used_bytes_per_sample"] == 8 * 4
    assert loading["read_bytes_per_sample"] >= 64 * 8 * 4, "a whole file is read for one row"


def test_the_screen_and_the_finding_name_class_and_line(seen: Observed) -> None:
    assert "Where a sample's time goes" in seen.out
    line = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if "the slow one" in text)
    assert f"train.py:{line}" in seen.out
    found = json.loads(hotloop(seen.folder, "diagnose", "--format", "json").stdout)["findings"]
    slow = next(finding for finding in found if finding["code"] == "slow-transform")
    assert (Path(slow["path"]).name, slow["line"]) == ("train.py", line)


def test_the_timeline_has_lanes_of_phases_operators_and_the_worker(seen: Observed) -> None:
    with contextlib.closing(find_session(seen.folder)) as session:
        kept = session.get("observation", Observation)
    assert kept is not None
    assert kept.deep is not None
    assert kept.deep.operators is not None
    found = kept.deep.operators.timeline
    assert found is not None
    lanes = {lane.kind: lane for lane in found.lanes}
    assert {"phases", "operators", "worker"} <= set(lanes)
    assert {span.name for span in lanes["worker"].spans} == {"batch"}
    assert "backward" in {span.name for span in lanes["phases"].spans}
    assert any(span.name.startswith("aten::") for span in lanes["operators"].spans)
    for lane in found.lanes:
        assert 0 < lane.busy_s <= found.window_s * 1.001
        assert all(-1e-6 <= span.begin_s <= found.window_s for span in lane.spans)
    assert seen.seen["deep"]["operators"]["timeline"] is None, "JSON is for figures"


def test_memory_is_told_by_phase_and_module(seen: Observed) -> None:
    memory: dict[str, Any] = seen.seen["deep"]["memory"]
    assert memory["device"] == "cpu"
    (linear,) = memory["modules"]
    assert (linear["cls"], linear["parameter_bytes"]) == ("Linear", 4 * 9)
    assert memory["phases"]["forward"]["change_bytes"] >= 4 * 4, "the output stays for the backward"
