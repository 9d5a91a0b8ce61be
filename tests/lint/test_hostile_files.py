"""One file that cannot be read is one line of the report; the others are linted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotloop.lint.check.config import LintConfig, read_config
from hotloop.lint.check.run import lint_files
from hotloop.lint.read.discover import python_files
from hotloop.lint.read.judge import Unfit, check_depth, source_bytes
from hotloop.model.errors import HotloopError
from hotloop.model.safety import Safety

GOOD = "import torch\ntorch.autograd.set_detect_anomaly(True)\n"
DEEP = {
    "parentheses": "x = " + "(" * 3000 + "1" + ")" * 3000,
    "lists": "x = " + "[" * 1000 + "]" * 1000,
    "sum": "x = " + "1 + " * 3000 + "1",
    "sum over lines": "x = (" + "1 +\n" * 3000 + "1)",
    "lambdas": "x = " + "lambda: " * 2000 + "1",
    "conditions": "x = " + "1 if a else " * 3000 + "1",
    "calls": "x = a" + "()" * 3000,
    "attributes": "x = a" + ".b" * 3000,
    "elif": "if a:\n    pass\n" + "elif b:\n    pass\n" * 3000,
}


@pytest.mark.parametrize("name", DEEP)
def test_what_is_too_deep_is_not_parsed(name: str) -> None:
    with pytest.raises(Unfit, match="nested deeper"):
        check_depth(f"import torch\n{DEEP[name]}\n")


@pytest.mark.parametrize(
    "text",
    [
        "x = [" + "f(1), " * 5000 + "]",
        "\n".join(f"a{number}.b(1).c(2)" for number in range(2000)),
        "x = '" + "(" * 5000 + "'  # " + "(" * 5000,
        "x = {" + "'a': 1.0 - 2,\n" * 3000 + "}",
    ],
)
def test_what_is_long_is_not_deep(text: str) -> None:
    check_depth(text)


def test_an_environment_is_known_by_what_it_holds(tmp_path: Path) -> None:
    for name in ("env", "my_venv", "build"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(GOOD)
    (tmp_path / "my_venv" / "pyvenv.cfg").touch()
    assert python_files([str(tmp_path)], ()) == [str(tmp_path / "env" / "a.py")]


def test_the_others_are_linted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.py").write_text(GOOD)
    Path("deep.py").write_text(f"import torch\n{DEEP['parentheses']}\n")
    Path("rot13.py").write_text("# coding: rot13\nvzcbeg gbepu\n")
    Path("zero.py").symlink_to("/dev/zero")
    os.mkfifo("pipe.py")
    Path(os.fsdecode(b"caf\xe9.py")).write_text(GOOD)
    found = lint_files(python_files(["."], ()), LintConfig())
    codes = {Path(finding.path or "").name: finding.code for finding in found.findings}
    assert codes == {
        "good.py": "anomaly-mode-on",
        os.fsdecode(b"caf\xe9.py"): "anomaly-mode-on",
        **dict.fromkeys(("deep.py", "rot13.py", "zero.py", "pipe.py"), "unreadable-file"),
    }


def test_a_file_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Unfit, match="larger than"):
        source_bytes(str(path))


def test_fix_edits_nothing_outside_of_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(GOOD)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    Path("link.py").symlink_to(outside)
    Path("linked").symlink_to(tmp_path / "others", target_is_directory=True)
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "theirs.py").write_text(GOOD)
    result = lint_files(["link.py"], LintConfig(), Safety.UNSAFE)
    assert result.num_fixed == 0
    assert outside.read_text() == GOOD
    lint_files(["linked/theirs.py"], LintConfig(), fix=Safety.UNSAFE)
    assert (tmp_path / "others" / "theirs.py").read_text() == GOOD
    lint_files([str(tmp_path / "others" / "theirs.py")], LintConfig(), fix=Safety.UNSAFE)
    assert (tmp_path / "others" / "theirs.py").read_text() != GOOD, "named as it is: meant"


@pytest.mark.parametrize(
    "text",
    [
        "[tool]\nhotloop = 5",
        "tool = 5",
        "[tool.hotloop]\nlint = []",
        "a = " + "[" * 5000,
        "a = " + "9" * 5000,
        "[tool.hotloop.lint]\nselect = " + "0x" + "f" * 5000,
    ],
)
def test_a_configuration_that_is_none_is_said(tmp_path: Path, text: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(text)
    with pytest.raises(HotloopError, match=r"pyproject\.toml"):
        read_config(file)
