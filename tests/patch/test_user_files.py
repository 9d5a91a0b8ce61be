"""What a patch reads and writes of the user's: nothing through links, nothing that has another's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.model.sites import Sites
from hotloop.model.tuning import PlanStep
from hotloop.patch.program_files import editable
from hotloop.patch.rewrite_plan import rewrite_plan
from hotloop.source.diff import unified
from hotloop.source.files import back_up
from hotloop.source.outcome import Edited, Refused

from .test_properties import sites_of


def test_a_backup_takes_no_name_that_a_link_has(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x = 1\n")
    (tmp_path / "train.py.orig").symlink_to(tmp_path / "elsewhere")
    assert back_up(tmp_path / "train.py").name == "train.py.orig1"
    assert not (tmp_path / "elsewhere").exists()


def test_a_source_that_a_link_leads_out_to_is_not_patched(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project, outside):
        folder.mkdir()
        (folder / "train.py").write_text("x = 1\n")
    (project / "linked.py").symlink_to(outside / "train.py")
    sites = Sites(sources=dict.fromkeys(("train.py", "linked.py", "../outside/train.py"), ""))
    assert set(editable(sites, project)) == {"train.py"}


def test_a_name_that_would_end_a_line_is_quoted_as_git_does() -> None:
    head = unified("a\n::error.py", b"1\n", b"2\n").splitlines()
    assert head[0] == b'--- "a/a\\012::error.py"'
    assert unified("caf\udce9.py", b"1\n", b"2\n").splitlines()[1] == b'+++ "b/caf\\351.py"'
    assert unified("plain.py", b"1\n", b"2\n").splitlines()[0] == b"--- a/plain.py"


@pytest.mark.parametrize("other", [b"def broken(:\n", b"# coding: nope\nx = 1\n", b"name = '\xff'\n"])
def test_a_file_that_cannot_be_read_stays_as_it_is_and_does_not_end_the_patch(other: bytes) -> None:
    text = "from torch.utils.data import DataLoader\nloader = DataLoader([1])\n"
    step = PlanStep(name="loader_workers", params={"num_workers": 2}, ratio=1, low=1, high=1)
    patch = rewrite_plan([step], sites_of(text), {"train.py": text.encode(), "other.py": other})
    assert isinstance(patch.outcomes[0].outcome, Edited)
    assert patch.changed == ("train.py",)
    assert patch.after["other.py"] == other


def test_what_would_edit_a_file_that_cannot_be_read_says_so() -> None:
    text = "from torch.utils.data import DataLoader\nloader = DataLoader([1])\n"
    step = PlanStep(name="loader_workers", params={"num_workers": 2}, ratio=1, low=1, high=1)
    patch = rewrite_plan([step], sites_of(text), {"train.py": b"from torch import (\n"})
    outcome = patch.outcomes[0].outcome
    assert isinstance(outcome, Refused)
    assert outcome.reason.startswith("train.py cannot be edited: its line 1 is no Python that LibCST reads")
