"""The plan as a file: people read it, edit it, and make mistakes in it."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.model.errors import HotloopError
from hotloop.model.tuning import PlanStep
from hotloop.tune.plan.plan_file import is_plan, read_plan, to_toml

from .plans import BF16, WORKERS, plan_for, write_plan


@pytest.mark.parametrize("steps", [(), (WORKERS,), (BF16, WORKERS)])
def test_a_plan_comes_back_as_it_was(tmp_path: Path, steps: tuple[PlanStep, ...]) -> None:
    path = write_plan(tmp_path, None, *steps)
    again = read_plan(path)
    assert again.steps == steps
    assert to_toml(again) == path.read_text()
    assert again.fit.script is None


@settings(max_examples=50, deadline=None)
@given(st.floats(min_value=1e-6, max_value=1e6), st.text(max_size=20))
def test_any_number_and_any_words_come_back(ratio: float, words: str) -> None:
    step = PlanStep(name="autocast_bf16", ratio=ratio, low=ratio / 2, high=ratio * 2, evidence=words)
    text = to_toml(plan_for(None, step))
    assert tomlkit.parse(text).unwrap()["steps"][0]["evidence"] == words
    assert tomlkit.parse(text).unwrap()["steps"][0]["ratio"] == ratio


def test_it_says_what_it_is_and_reads_like_a_list_of_steps(tmp_path: Path) -> None:
    text = write_plan(tmp_path, None, BF16, WORKERS).read_text()
    assert text.startswith("# hotloop plan: what `hotloop run --plan` switches on.\n# Steps may be edited")
    assert '[[steps]]\nname = "autocast_bf16"\nratio = 1.5\n' in text
    assert "[steps.params]\nnum_workers = 2\npersistent_workers = true\n" in text
    assert text.count("[steps.params]") == 1, "steps without parameters have no empty table"


def test_comments_and_changed_parameters_are_taken(tmp_path: Path) -> None:
    path = write_plan(tmp_path, None, WORKERS)
    path.write_text(
        path.read_text().replace("num_workers = 2", "num_workers = 4  # the new machine has more")
    )
    assert read_plan(path).steps[0].params["num_workers"] == 4


def test_a_step_may_be_removed(tmp_path: Path) -> None:
    path = write_plan(tmp_path, None, BF16, WORKERS)
    head, _, rest = path.read_text().partition("[[steps]]")
    path.write_text(head + rest[rest.index("[[steps]]") :])
    assert [step.name for step in read_plan(path).steps] == ["loader_workers"]


@pytest.mark.parametrize(
    ("before", "after", "message", "hint"),
    [
        ("[[steps]]", "[[steps", "is not TOML: Expected ']]'", "correct that place"),
        (
            "loader_workers",
            "loader_worker",
            "there is no optimization named 'loader_worker'",
            "did you mean loader_workers",
        ),
        (
            "num_workers = 2",
            "num_workers = -2",
            "num_workers is -2; allowed: a whole number from 0",
            "hotloop explain loader_workers",
        ),
        (
            "num_workers = 2",
            'num_workers = "two"',
            "num_workers is 'two'; allowed: a whole number",
            "hotloop explain",
        ),
        (
            "num_workers = 2",
            "num_worker = 2",
            "unknown parameter 'num_worker'",
            "hotloop explain loader_workers",
        ),
        (
            "[steps.params]",
            "[steps.parameters]",
            "has 'parameters' in step 1, which says nothing",
            "name, params, ratio",
        ),
        ('name = "loader_workers"', "", "step 1 has no name", "tries one optimization"),
        ("ratio = 1.3\n", "", "step 1 has no ratio", "hotloop tune --only"),
        (
            "ratio = 1.3",
            'ratio = "fast"',
            "Expected `float`, got `str`, in step 1 `ratio`",
            "correct that place",
        ),
        ("schema = 1", "schema = 7", "is of schema 7, this hotloop reads schema 1", "make a new plan"),
        (
            "[fit.machine]",
            "[fit.machines]",
            "missing required field `machine`, at `fit`",
            "correct that place",
        ),
        (
            'name = "autocast_bf16"',
            'name = "loader_workers"\nparams.num_workers = 1',
            "has loader_workers twice",
            "remove one",
        ),
        ('name = "loader_workers"', 'name = "autocast_fp16"', "which cannot be on together", "remove one"),
    ],
)
def test_mistakes_are_named_with_a_next_step(
    tmp_path: Path, before: str, after: str, message: str, hint: str
) -> None:
    steps = (BF16, WORKERS) if "remove one" in hint else (WORKERS,)
    path = write_plan(tmp_path, None, *steps)
    text = path.read_text()
    assert before in text
    if after.endswith('"autocast_fp16"'):
        text = text.replace("[steps.params]\nnum_workers = 2\npersistent_workers = true\n", "")
    path.write_text(text.replace(before, after))
    with pytest.raises(HotloopError) as caught:
        read_plan(path)
    assert message in caught.value.message
    assert path.name in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "there is no plan"), (b"\xff\xfe", "cannot be read"), (b"", "is not a hotloop plan")],
)
def test_what_is_no_plan_at_all_is_said(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "hotloop.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(HotloopError, match=message):
        read_plan(path)


def test_a_folder_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(HotloopError, match="cannot be read"):
        read_plan(tmp_path)


def test_only_a_plan_may_be_written_over(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, None, WORKERS)
    plan.write_text(plan.read_text().split("\n", 2)[2])
    assert is_plan(plan), "also without its comments"
    other = tmp_path / "pyproject.toml"
    other.write_text("[tool.ruff]\nline-length = 110\n")
    assert not is_plan(other)
    assert not is_plan(tmp_path / "nothing.toml")
