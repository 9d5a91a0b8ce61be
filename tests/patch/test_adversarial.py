"""Adversarial sources are patched right or left alone with the reason; none is broken."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from hotloop.model.safety import Safety
from hotloop.model.sites import Sites
from hotloop.model.tuning import PlanStep
from hotloop.patch.rewrite_plan import Patch, rewrite_plan
from hotloop.source.outcome import Refused

from .adversarial import SOURCES
from .observing import observe_all, run_all

STEPS = {
    "loader_workers": {"num_workers": 1},
    "fused_optimizer": {"implementation": "fused"},
    "autocast_bf16": {},
    "compile": {},
    "tf32_matmul": {},
    "kernel_autotune": {},
}
PLAN = [PlanStep(name=name, params=params, ratio=1, low=1, high=1) for name, params in STEPS.items()]
LEFT_ALONE = {
    "star_arguments": {"loader_workers"},
    "everything_on_one_line": {"autocast_bf16"},
    "code_in_a_string": {"loader_workers", "fused_optimizer", "compile"},
}
"""What is refused there; everything else is written."""
BF16_TOLERANCE = 0.02
"""Of the size of the parameters after two steps: bfloat16 has 8 bits of mantissa."""
each = pytest.mark.parametrize("name", SOURCES)
pytestmark = pytest.mark.slow


def content(name: str) -> bytes:
    text = SOURCES[name]
    return text.encode() if isinstance(text, str) else text


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sites]:
    return observe_all(SOURCES, tmp_path_factory.mktemp("observed"))


@pytest.fixture(scope="module")
def patches(sites: dict[str, Sites]) -> dict[str, Patch]:
    return {name: rewrite_plan(PLAN, sites[name], {"train.py": content(name)}) for name in SOURCES}


@each
def test_it_is_patched_or_left_alone_with_the_reason(name: str, patches: dict[str, Patch]) -> None:
    outcomes = {each.step.name: each.outcome for each in patches[name].outcomes}
    refused = {step: outcome.reason for step, outcome in outcomes.items() if isinstance(outcome, Refused)}
    assert set(refused) == LEFT_ALONE.get(name, set()), refused
    compile(patches[name].after["train.py"], name, "exec")


@each
def test_lines_that_no_edit_names_are_the_same_bytes(name: str, patches: dict[str, Patch]) -> None:
    """Every line of before is in after, changed only where a call grew or a `with` moved it to the right."""
    before, after = (
        raw.split(b"\n") for raw in (patches[name].before["train.py"], patches[name].after["train.py"])
    )
    for tag, first, last, _, _ in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        lines = before[first:last] if tag in {"replace", "delete"} else []
        calls = (b"(", b")", b"=", b"\\", b"#")
        assert all(any(mark in line for mark in calls) or b"for " in line for line in lines), lines


@each
def test_twice_is_once(name: str, patches: dict[str, Patch]) -> None:
    once = patches[name]
    assert rewrite_plan(PLAN, once.sites, once.after, Safety.SAFE).after == once.after


@each
def test_a_scaler_goes_all_the_way_or_nowhere(name: str, sites: dict[str, Sites]) -> None:
    plan = [PlanStep(name="autocast_fp16", ratio=1, low=1, high=1)]
    once = rewrite_plan(plan, sites[name], {"train.py": content(name)})
    after = once.after["train.py"]
    compile(after, name, "exec")
    words = (b".amp.GradScaler(", b"scaler.scale(", b"scaler.step(", b"scaler.update(", b"float16")
    assert {word in after for word in words} == {bool(once.changed)}, once.outcomes
    assert bool(once.changed) != isinstance(once.outcomes[0].outcome, Refused)
    assert rewrite_plan(plan, once.sites, once.after).after == once.after


@pytest.mark.timeout(600)
def test_the_patched_sources_learn_what_they_learned(patches: dict[str, Patch], tmp_path: Path) -> None:
    before = run_all({name: patch.before["train.py"] for name, patch in patches.items()}, tmp_path / "before")
    after = run_all({name: patch.after["train.py"] for name, patch in patches.items()}, tmp_path / "after")
    assert all(before.values())
    assert {name: pytest.approx(sizes, rel=BF16_TOLERANCE) for name, sizes in before.items()} == after
