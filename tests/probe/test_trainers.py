"""Where frameworks are set up, as the probe sees it: through heirs, partials and decorators, never in the classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotloop.probe.process.config import ProbeConfig

from .conftest import RunProgram

_PROGRAM = """
import functools, inspect
from dataclasses import dataclass
import lightning as L
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from lightning.fabric import Fabric
from transformers import HfArgumentParser, TrainingArguments

class Mine(L.Trainer):
    def __init__(self, **settings):
        super().__init__(logger=False, **settings)

@dataclass
class Arguments(TrainingArguments):
    depth: int = 2

Mine(max_epochs=1)
make = functools.partial(L.Trainer, logger=False)
make(max_epochs=2)
Fabric(devices=1)
Accelerator(cpu=True)
AcceleratorState()
TrainingArguments("out")
Arguments("mine")
HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(args=["--output_dir", "parsed"])
for cls in (L.Trainer, Fabric, Accelerator, TrainingArguments):  # as command lines are made of them
    assert inspect.isfunction(inspect.getattr_static(cls, "__init__")), cls
parts = [L.pytorch.trainer.connectors.data_connector._DataConnector, AcceleratorState]
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    model(torch.randn(3, 2)).sum().backward()
    optimizer.step()
assert all(inspect.isfunction(inspect.getattr_static(cls, "__init__")) for cls in parts), "left as it was"
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_each_way_of_setting_up_is_seen(run_probed: RunProgram, tmp_path: Path) -> None:
    done = run_probed(_PROGRAM, ProbeConfig(folder=str(tmp_path / "probe"), sites=True))
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "probe").glob("process-*.json")
    facts = json.loads(path.read_text())
    assert facts["notes"] == []
    lines = _PROGRAM.splitlines()

    def said(site: dict[str, Any]) -> tuple[str, list[str], bool]:
        own = [place for place in site["places"] if place["path"] == str(tmp_path / "program.py")]
        name = site["callee"].rpartition(".")[2]
        return name, [lines[place["line"] - 1].strip() for place in own], site["direct"]

    assert [said(site) for site in facts["sites"] if site["kind"] == "trainer"] == [
        ("Trainer", ["super().__init__(logger=False, **settings)", "Mine(max_epochs=1)"], True),
        ("Trainer", ["make(max_epochs=2)"], True),
        ("Fabric", ["Fabric(devices=1)"], True),
        ("Accelerator", ["Accelerator(cpu=True)"], True),
        ("TrainingArguments", ['TrainingArguments("out")'], True),
        ("TrainingArguments", ['Arguments("mine")'], True),
        (
            "TrainingArguments",
            [
                'HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(args=["--output_dir", "parsed"])'
            ],
            False,
        ),
    ]
