"""Fixes are whole, safe to interrupt, and change nothing else."""

import os
from pathlib import Path

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.lint.check.config import LintConfig
from hotloop.lint.check.fix import fix_source
from hotloop.lint.check.registry import all_rules
from hotloop.lint.check.run import Fixable, lint_files
from hotloop.model.safety import Safety
from hotloop.source.files import write_atomically

from .spec_files import all_specs

SEVERAL = """\
import torch
from torch.utils.data import DataLoader

model = Net().cuda()
loader = DataLoader(train_set, shuffle=True, num_workers=4)  # the data
for epoch in range(3):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda"))
        loss.backward()
        optimizer.step()
        total += loss
"""


def test_several_rules_edit_one_call_in_turn() -> None:
    fixed = fix_source("train.py", SEVERAL, all_rules(), Safety.UNSAFE)
    assert "num_workers=4, persistent_workers=True, pin_memory=True)  # the data" in fixed.text or (
        "num_workers=4, pin_memory=True, persistent_workers=True)  # the data" in fixed.text
    )
    assert 'x.to("cuda", non_blocking=True)' in fixed.text
    assert "total += loss.detach()" in fixed.text


def test_a_second_run_finds_nothing_left_to_fix(tmp_path: Path) -> None:
    """What one rule writes, `pin_memory`, is the word that another looks for."""
    file = tmp_path / "train.py"
    file.write_text(SEVERAL)
    first = lint_files([str(file)], LintConfig(), Safety.UNSAFE)
    assert 'x.to("cuda", non_blocking=True)' in file.read_text()
    assert first.fixable == Fixable()
    assert lint_files([str(file)], LintConfig(), Safety.UNSAFE).num_fixed == 0


def test_safe_fixes_leave_the_unsafe_ones() -> None:
    fixed = fix_source("train.py", SEVERAL, all_rules(), Safety.SAFE)
    assert "pin_memory=True" in fixed.text
    assert "persistent_workers" not in fixed.text


def test_removing_the_only_statement_leaves_python() -> None:
    loop = "for x in data:\n    loss.backward()\n    optimizer.step()\n    if x:\n        gc.collect()\n"
    source = f"import gc\nimport torch\n{loop}"
    fixed = fix_source("train.py", source, all_rules(), Safety.UNSAFE)
    compile(fixed.text, "train.py", "exec")
    assert "gc.collect()" not in fixed.text


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.code)
def test_fixing_any_spec_with_all_rules_gives_python_and_is_idempotent(spec: object) -> None:
    cases = [*spec.found, *spec.fine]  # type: ignore[attr-defined]
    for case in cases:
        once = fix_source("train.py", case.source, all_rules(), Safety.UNSAFE).text
        cst.parse_module(once)
        assert fix_source("train.py", once, all_rules(), Safety.UNSAFE).text == once


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from(["shuffle=True", "num_workers=2", "pin_memory=False", "drop_last=True"]), unique=True
    ),
    st.booleans(),
)
def test_any_argument_list_keeps_its_other_arguments(arguments: list[str], trailing_comma: bool) -> None:
    inside = ", ".join(["data", *arguments]) + ("," if trailing_comma else "")
    source = (
        f"import torch\nfrom torch.utils.data import DataLoader\nm.cuda()\nloader = DataLoader({inside})\n"
    )
    fixed = fix_source("train.py", source, all_rules(), Safety.UNSAFE).text
    compile(fixed, "train.py", "exec")
    for argument in arguments:
        if argument != "pin_memory=False":
            assert argument in fixed


def test_line_ends_encoding_and_mode_survive(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    head = "# -*- coding: latin-1 -*-\r\n# caf\u00e9\r\nimport torch\r\n"
    text = head + "torch.autograd.set_detect_anomaly(True)\r\n"
    file.write_bytes(text.encode("latin-1"))
    os.chmod(file, 0o755)
    result = lint_files([str(file)], LintConfig(), Safety.SAFE)
    assert result.num_fixed == 1
    assert file.read_bytes() == text.replace("True", "False").encode("latin-1")
    assert file.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "train.py"
    file.write_text("old")

    def no_replace(source: str, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", no_replace)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(file, b"new")
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
