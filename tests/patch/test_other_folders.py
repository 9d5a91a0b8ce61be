"""A plan's paths are those of the folder that its program ran in, from wherever a command is typed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from hotloop.cli.app import run
from hotloop.model.sites import Sites
from hotloop.patch.account_in_plan import with_patch_known
from hotloop.tune.plan.plan_file import read_plan, to_toml
from hotloop.tune.plan.plan_folder import folder_of_plan, with_folder

from ..tune.plans import BF16, plan_for
from .observing import observe_all
from .test_command import TRAIN


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Sites:
    """Where a run from the folder above was seen to call what: `demo/train.py`."""
    seen = observe_all({"it": TRAIN}, tmp_path_factory.mktemp("observed"))["it"]

    def below(path: str) -> str:
        return f"demo/{path}" if path == "train.py" else path

    return msgspec.structs.replace(
        seen,
        sources={below(path): digest for path, digest in seen.sources.items()},
        sites=tuple(
            msgspec.structs.replace(
                site,
                places=tuple(msgspec.structs.replace(each, path=below(each.path)) for each in site.places),
            )
            for site in seen.sites
        ),
    )


@pytest.fixture
def above(tmp_path: Path, sites: Sites, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`hotloop tune --plan demo/hotloop.toml demo/train.py`, as `hotloop demo` does it."""
    folder = tmp_path / "above"
    (folder / "demo").mkdir(parents=True)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder)
    script = Path("demo/train.py")
    script.write_text(TRAIN)
    plan = msgspec.structs.replace(plan_for(script, BF16), sites=sites)
    plan_file = Path("demo/hotloop.toml")
    plan_file.write_text(to_toml(with_folder(with_patch_known(plan, folder), plan_file, folder)))
    return folder


@pytest.mark.parametrize(
    ("typed_in", "plan", "name"),
    [
        (".", "demo/hotloop.toml", "demo/train.py"),
        ("demo", "hotloop.toml", "train.py"),
        ("elsewhere", "../demo/hotloop.toml", "demo/train.py"),
    ],
)
def test_patch_is_typed_anywhere(
    above: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    typed_in: str,
    plan: str,
    name: str,
) -> None:
    monkeypatch.chdir(above / typed_in)
    assert run(["patch", plan]) == 0
    diff, said = capfdbinary.readouterr()
    assert f"--- a/{name}".encode() in diff
    assert (b"cd " + os.fsencode(above) in said) == (typed_in != ".")
    base = above if name != "train.py" else above / typed_in
    subprocess.run(["patch", "-p1", "--dry-run"], input=diff, cwd=base, check=True, capture_output=True)
    assert Path.cwd() == above / typed_in

    assert run(["patch", "--write", plan]) == 0
    assert "autocast" in (above / "demo" / "train.py").read_text()
    assert read_plan(above / "demo" / "hotloop.toml").fit.folder == ".."
    assert run(["patch", plan]) == 0
    assert b"nothing to do, in the source already: autocast_bf16" in capfdbinary.readouterr().err


def test_program_and_plan_move_together(above: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = above.rename(above.parent / "moved")
    monkeypatch.chdir(moved / "elsewhere")
    plan_file = Path("../demo/hotloop.toml")
    assert folder_of_plan(read_plan(plan_file), plan_file) == moved


def test_a_plan_that_was_moved_alone_is_about_the_current_folder(
    above: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_file = (above / "demo" / "hotloop.toml").rename(above.parent / "hotloop.toml")
    monkeypatch.chdir(above)
    assert folder_of_plan(read_plan(plan_file), plan_file) == above


def test_a_plan_of_an_earlier_version_is_about_the_current_folder(tmp_path: Path) -> None:
    assert folder_of_plan(plan_for(None, BF16), tmp_path / "hotloop.toml") == Path.cwd()
