"""The probe gets in when torch is imported, however that comes about, and in no other way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import RunProgram, run_python, with_probe

_INSTALLED = "print(type(torch.autograd._engine_run_backward).__module__ == 'hotloop.probe.frameless')"


def test_asking_for_torch_is_not_importing_it(run_probed: RunProgram) -> None:
    done = run_probed(
        "import importlib.util, sys\n"
        "from importlib.machinery import PathFinder\n"
        "before = len(sys.meta_path)\n"
        "assert PathFinder.find_spec('torch') is not None\n"
        "assert importlib.util.find_spec('torch') is not None and importlib.util.find_spec('torch') is not None\n"
        f"import torch\n{_INSTALLED}\n"
        "print(any(type(finder).__module__ == 'hotloop.probe.setup.import_hook' for finder in sys.meta_path))\n"
        "print('exec_module' in vars(torch.__spec__.loader))"
    )
    assert done.stdout.split() == ["True", "False", "False"], done.stderr


def test_a_process_without_torch_carries_almost_nothing(run_probed: RunProgram) -> None:
    done = run_probed("import sys\nprint(sorted(n for n in sys.modules if n.startswith('hotloop.probe.')))")
    assert "hotloop.probe.probe" not in done.stdout
    assert "hotloop.probe.setup.install" in done.stdout


@pytest.mark.parametrize("name", ["sitecustomize", "usercustomize"])
def test_the_users_own_customization_runs_too(tmp_path: Path, name: str) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / f"{name}.py").write_text("import sys\nsys.mine = 'ran'\n")
    (tmp_path / "program.py").write_text(
        f"import sys\nprint(sys.mine, sys.modules[{name!r}].__file__ == {str(own / (name + '.py'))!r})\n"
        f"import torch\n{_INSTALLED}\n"
    )
    environment = with_probe(tmp_path / "probe")
    environment["PYTHONPATH"] += os.pathsep + str(own)
    environment.pop("PYTHONNOUSERSITE", None)
    done = run_python(["program.py"], environment, tmp_path)
    if name == "usercustomize" and "sys.mine" in done.stderr:
        pytest.skip("this Python has its user site switched off")
    assert done.stdout.split() == ["True", "True"] or done.stdout.split() == ["ran", "True", "True"]


def test_a_sitecustomize_that_fails_fails_as_it_does_without_us(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("raise RuntimeError('mine')\n")
    environment = with_probe(tmp_path / "probe")
    environment["PYTHONPATH"] += os.pathsep + str(own)
    done = run_python(["-c", "print('goes on')"], environment, tmp_path)
    assert done.stdout == "goes on\n"
    assert "mine" in done.stderr


def test_nothing_of_ours_has_a_short_name_or_stays_on_the_path(run_probed: RunProgram) -> None:
    names = ("config", "probe", "events", "recorder", "points", "site", "data", "model", "utils")
    code = f"""
import importlib.util, sys, torch
for name in {names!r}:
    spec = importlib.util.find_spec(name)
    assert spec is None or 'hotloop' not in (spec.origin or ''), spec
assert not any('hotloop/launch' in entry for entry in sys.path), sys.path
print('clean')
"""
    assert run_probed(code).stdout == "clean\n"
