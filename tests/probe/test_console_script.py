"""Whose code a program is that starts as a command of an installed package."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from hotloop.probe.record.call_site import is_library
from hotloop.probe.record.console_script import started_package

_SCRIPT = """#!/usr/bin/python
import re
import sys
from {package}.cli import main
if __name__ == '__main__':
    sys.exit(main())
"""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command of a package that is installed under site-packages."""
    scripts, packages = tmp_path / "bin", tmp_path / "lib" / "site-packages"
    (packages / "voicetrainer").mkdir(parents=True)
    (packages / "voicetrainer" / "__init__.py").write_text("")
    scripts.mkdir()
    script = scripts / "voice-train"
    script.write_text(_SCRIPT.format(package="voicetrainer"))
    monkeypatch.syspath_prepend(str(packages))
    paths = {**sysconfig.get_paths(), "scripts": str(scripts)}
    monkeypatch.setattr(sysconfig, "get_path", lambda name: paths[name])
    return script


def test_the_package_of_a_command_is_the_program(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = command.parents[1] / "lib" / "site-packages" / "voicetrainer"
    assert started_package(str(command)) == f"{package}/"
    monkeypatch.setattr(sys, "argv", [str(command)])
    assert not is_library(str(package / "loop.py"))
    assert is_library(str(command))
    assert is_library(str(package.parent / "other" / "loop.py"))
    assert not is_library(str(package.parents[2] / "plugin.py"))
    assert started_package(str(package / "__main__.py")) == f"{package}/"


def test_launchers_and_scripts_of_the_user_s_are_what_they_were(
    command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.write_text(_SCRIPT.format(package="accelerate"))
    own = tmp_path / "train.py"
    own.write_text("from voicetrainer.cli import main\nmain()\n")
    assert started_package(str(command)) is None
    assert started_package(str(own)) is None
    monkeypatch.setattr(sys, "argv", [str(own)])
    assert not is_library(str(own))
    assert is_library(str(command.parents[1] / "lib" / "site-packages" / "voicetrainer" / "loop.py"))
