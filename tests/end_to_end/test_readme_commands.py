"""The README's two commands in a fresh copy of the tree, in both orders and twice."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ruff.__main__ import find_ruff_bin

REPOSITORY = Path(__file__).parents[2]
OLD = (".git", ".venv*", ".*_cache", ".hotloop", "hotloop-demo", "__pycache__", "dist", "build")
COMMANDS = {"test": "TESTS=tests/cli/test_commands.py", "demo": "BUDGET=30s"}
Make = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, as a clone has it, with a stray script of somebody's."""
    copy = tmp_path_factory.mktemp("fresh") / "hotloop"
    shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(*OLD))
    (copy / "mine.py").write_text("import os,sys\nx=1\n")
    return copy


@pytest.fixture
def make(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """`make` with an environment that is ready: what is tested here is not the package index."""
    environment = _environment(tmp_path_factory.mktemp("environment"), tree)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", f"VENV={environment}", *words],
            cwd=tree,
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
            env={**os.environ, "NO_COLOR": "1"},
        )

    return run


def _environment(folder: Path, tree: Path) -> Path:
    """Return an environment that has the copy's hotloop, and everything else from this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "here.pth").write_text("\n".join([str(tree / "src"), *site.getsitepackages()]) + "\n")
    for pth in (path for place in site.getsitepackages() for path in Path(place).glob("*.pth")):
        lines = [
            line
            for line in pth.read_text().splitlines()
            if line.startswith("/") and not line.endswith("/src")
        ]
        with (packages / "here.pth").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
    python = folder / "bin" / "python"
    imports = '-c "from importlinter.cli import lint_imports_command as run; run()"'
    for name, how in (
        ("hotloop", "-m hotloop"),
        ("mypy", "-m mypy"),
        ("lint-imports", imports),
    ):
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {python} {how} "$@"\n')
        script.chmod(0o755)
    # Asked here: in the new environment it would find itself.
    (folder / "bin" / "ruff").symlink_to(find_ruff_bin())
    (folder / ".base").touch()
    (folder / ".test").touch()
    return folder


@pytest.mark.slow
@pytest.mark.timeout(6000)
@pytest.mark.parametrize("order", [("test", "demo", "test"), ("demo", "test", "demo")])
def test_both_commands_in_both_orders_and_twice(order: tuple[str, ...], tree: Path, make: Make) -> None:
    said = {}
    for name in order:
        said[name] = make(name, COMMANDS[name])
        assert said[name].returncode == 0, f"{name}\n{said[name].stdout[-3000:]}\n{said[name].stderr[-3000:]}"
    assert (tree / "hotloop-demo" / "train.py").exists()
    assert "hotloop tune python train.py" in said["demo"].stdout, "what to type for one's own program"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_the_checks_in_a_tree_that_cannot_be_written_to(tree: Path, make: Make) -> None:
    for folder in (tree, *(path for path in tree.rglob("*") if path.is_dir())):
        folder.chmod(0o555)
    try:
        assert make("check").returncode == 0
    finally:
        for folder in (tree, *(path for path in tree.rglob("*") if path.is_dir())):
            folder.chmod(0o755)
