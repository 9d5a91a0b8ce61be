"""A patched program is known by its lines: some edits are whole, of some a part is left, some are undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hotloop.model.safety import Safety
from hotloop.model.tuning import Patched, Plan, PlanStep, StepEdit, Written
from hotloop.patch.account import nothing_to_do
from hotloop.patch.account_in_plan import with_patch_known, with_written
from hotloop.patch.program_files import digest_of, editable
from hotloop.patch.rewrite_plan import rewrite_plan
from hotloop.source.outcome import AlreadySo, Refused
from hotloop.tune.plan.in_source import in_source, rest_of
from hotloop.tune.plan.plan_file import read_plan, to_toml

from ..tune.plans import plan_for
from .test_properties import sites_of

TRAIN = """\
import argparse
import torch
from torch.utils.data import DataLoader
parser = argparse.ArgumentParser()
parser.add_argument("-j", "--workers", type=int, default=0)
args = parser.parse_args()
loader = DataLoader(data, batch_size=4, num_workers=args.workers)
model = Net(4)
optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
for x, y in loader:
    output = model(x)
    loss = criterion(output, y)
    loss.backward()
"""
STEPS: dict[str, dict[str, Any]] = {
    "loader_workers": {"num_workers": 2},
    "loader_prefetch": {"prefetch_factor": 4},
    "fused_optimizer": {"implementation": "fused"},
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return patched_by_hand(tmp_path, STEPS)


def patched_by_hand(folder: Path, steps: dict[str, dict[str, Any]]) -> Plan:
    """The plan of a program that its patch was applied to, as it is read again."""
    plan = plan_of(folder, steps)
    patch = rewrite_plan(plan.steps, plan.sites, editable(plan.sites, folder))
    (folder / "train.py").write_bytes(patch.after["train.py"])
    (folder / "hotloop.toml").write_text(to_toml(plan))
    return read_plan(folder / "hotloop.toml")


def plan_of(folder: Path, steps: dict[str, dict[str, Any]]) -> Plan:
    (folder / "train.py").write_text(TRAIN)
    sites = msgspec.structs.replace(sites_of(TRAIN), sources={"train.py": digest_of(TRAIN.encode())})
    made = [PlanStep(name=name, params=params, ratio=1, low=1, high=1) for name, params in steps.items()]
    plan = msgspec.structs.replace(plan_for(Path("train.py"), *made), sites=sites)
    return with_patch_known(plan, folder)


def test_steps_that_share_a_line_are_all_known(plan: Plan, tmp_path: Path) -> None:
    found = in_source(plan, tmp_path, ["train.py"])
    assert set(found.steps) == set(STEPS)
    assert rest_of(plan, found) == ()


def test_a_program_that_was_not_patched_is_not_taken_for_one(plan: Plan, tmp_path: Path) -> None:
    for text in (TRAIN, TRAIN.replace("lr=lr", "lr=0.1"), TRAIN + "\n\ndef __len__(self):\n    pass\n"):
        (tmp_path / "train.py").write_text(text)
        found = in_source(plan, tmp_path, ["train.py"])
        assert (found.steps, found.altered) == ((), ())
        assert {step.name for step in rest_of(plan, found)} == set(STEPS)


@pytest.mark.parametrize("words", [["--workers", "0"], ["--workers=0"], ["-j", "0"], ["-j0"]])
def test_a_default_that_the_command_overrules_is_switched_on(
    plan: Plan, tmp_path: Path, words: list[str]
) -> None:
    assert "loader_workers" not in in_source(plan, tmp_path, ["train.py", *words]).steps
    assert "loader_workers" in in_source(plan, tmp_path, ["train.py", "-j", "2"]).steps


def test_half_an_edit_is_neither_taken_for_one_nor_doubled(tmp_path: Path) -> None:
    plan = patched_by_hand(tmp_path, {"dataset_in_memory": {}, "fused_optimizer": {}, "pinned_memory": {}})
    text = (tmp_path / "train.py").read_text()
    (tmp_path / "train.py").write_text(text.replace("batch_size=4", "batch_size=8"))
    found = in_source(plan, tmp_path, ["train.py"])
    assert found.altered == ("dataset_in_memory",), "its class is there, the loader's line is another"
    assert found.steps == ("fused_optimizer",)
    assert [step.name for step in rest_of(plan, found)] == ["pinned_memory"]
    assert "dataset_in_memory is not switched on" in "".join(found.said())


def test_what_an_earlier_patch_wrote_stays_known_when_another_is_written(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, STEPS)
    first = rewrite_plan(plan.steps[:2], plan.sites, editable(plan.sites, tmp_path))
    (tmp_path / "train.py").write_bytes(first.after["train.py"])
    plan = with_written(plan, first)
    found = in_source(plan, tmp_path, ())
    assert set(found.steps) == {"loader_workers", "loader_prefetch"}
    second = rewrite_plan(plan.steps, plan.sites, editable(plan.sites, tmp_path), known=found.edits)
    assert [isinstance(each.outcome, AlreadySo) for each in second.outcomes] == [True, True, False]
    (tmp_path / "train.py").write_bytes(second.after["train.py"])
    assert set(in_source(with_written(plan, second), tmp_path, ()).steps) == set(STEPS)
    assert second.started_as(("train.py", "-j", "0")) == ("train.py", "-j", "2")


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        ("no_grad_evaluation", "with torch.no_grad():\n    bias.zero_()\n"),
        ("flash_attention", "other = F.scaled_dot_product_attention\n"),
        ("conv_bias_off", "head = Linear(bias=False)\n"),
        ("created_on_device", "weight = ones(4, device=device)\n"),
        ("vectorized_loop", "norms = torch.vmap(norm)(rows)\n"),
        ("deferred_sync", "shown = loss.detach().double()\n"),
        ("zero_grad_none", "optimizer.zero_grad()\n"),
    ],
)
def test_what_the_program_does_elsewhere_is_no_reason_to_drop_a_proven_step(
    name: str, elsewhere: str
) -> None:
    text = TRAIN + elsewhere
    step = PlanStep(name=name, ratio=1, low=1, high=1)
    patch = rewrite_plan([step], sites_of(text), {"train.py": text.encode()}, Safety.UNSAFE)
    assert isinstance(patch.outcomes[0].outcome, Refused), patch.outcomes[0].outcome


def test_a_patched_program_is_started_as_the_patch_says(plan: Plan) -> None:
    command = ("taskset", "-c", "0-3", "python", "train.py", "--workers", "2")
    written = Written(
        edits={},
        refused={"compile": "the model has no name"},
        environment={"OMP_NUM_THREADS": "4"},
        command=command,
    )
    told = list(nothing_to_do(written, plan))
    assert "compile: not written: the model has no name" in told
    assert f"  OMP_NUM_THREADS=4 {' '.join(command)}" in told


def test_a_plan_notes_how_the_patched_program_is_started(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {**STEPS, "thread_count": {"num_threads": 2}})
    plan = msgspec.structs.replace(
        plan, fit=msgspec.structs.replace(plan.fit, command=("train.py", "-j", "0"))
    )
    written = with_patch_known(plan, tmp_path).patched.variants[0]
    assert written.command == ("train.py", "-j", "2")
    assert written.environment["OMP_NUM_THREADS"] == "2"
    assert "thread_count" not in written.edits


def test_an_edit_of_no_lines_is_nowhere(plan: Plan, tmp_path: Path) -> None:
    variant = Written(edits={"loader_workers": StepEdit(lines={})})
    plan = msgspec.structs.replace(plan, patched=Patched(variants=(variant,)))
    assert in_source(plan, tmp_path, ()).steps == ()
