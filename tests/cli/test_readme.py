"""The README names every exit code and every extra: people look for both before they read a manual."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from hotloop.model.errors import ExitCode

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_every_exit_code_is_in_the_readme() -> None:
    named = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert {int(code) for code in ExitCode} <= named
    assert 5 in named, "a gate that could not judge"


def test_every_extra_is_in_the_readme() -> None:
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    table = README[README.index("| extra | needed by |") :]
    named = set(re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE))
    assert extras - {"test"} <= set(re.findall(r"`(\w+)`", " ".join(named)))
