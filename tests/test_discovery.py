"""A rule or an optimization is listed by lying in its family's folder: one file or folder more, and nothing else."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.diagnose.check import registry as diagnose
from hotloop.discovery import members
from hotloop.lint.check import registry as lint
from hotloop.optimize import registry as optimize
from hotloop.optimize.pages import page

SOURCES = Path(__file__).parents[1] / "src" / "hotloop"
RULES = {
    "hotloop.lint.rules.host": (lint.all_rules, "lint/rules/host/anomaly_mode_on.py"),
    "hotloop.diagnose.rules.host": (diagnose.all_rules, "diagnose/rules/host/anomaly_mode_on.py"),
}
ROW = "optimize/catalogue/system/huge_pages"
CACHED = (lint.all_rules, diagnose.all_rules, optimize.built_in)


@pytest.fixture(autouse=True)
def found_anew() -> Iterator[None]:
    """What is found is kept for the process: a test's own goes when it ends."""
    kept = set(sys.modules)
    yield
    for name in set(sys.modules) - kept:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if name.startswith("hotloop.") and not file.startswith(str(SOURCES)):
            del sys.modules[name]
    for one in CACHED:
        one.cache_clear()


def _beside(package: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a folder be part of a package, as a file put there would be."""
    module = importlib.import_module(package)
    monkeypatch.setattr(module, "__path__", [*module.__path__, str(folder)])
    for one in CACHED:
        one.cache_clear()


@pytest.mark.parametrize("family", RULES)
def test_a_rule_is_one_file(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules, model = RULES[family]
    before = [rule.code for rule in rules()]
    text = (SOURCES / model).read_text().replace("anomaly-mode-on", "anomaly-mode-again")
    (tmp_path / "anomaly_mode_again.py").write_text(text)
    _beside(family, tmp_path, monkeypatch)
    after = [(rule.code, rule.family) for rule in rules()]
    assert [code for code, _ in after if code not in before] == ["anomaly-mode-again"]
    assert dict(after)["anomaly-mode-again"] == "host"


def test_an_optimization_is_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "larger_pages"
    folder.mkdir()
    for file in (SOURCES / ROW).glob("*.py"):
        renamed = file.read_text().replace("huge_pages", "larger_pages").replace("HugePages", "LargerPages")
        (folder / file.name).write_text(renamed)
    _beside("hotloop.optimize.catalogue.system", tmp_path, monkeypatch)
    assert "LargerPages" in [cls.__name__ for cls in optimize.built_in()["system"]]
    assert optimize.get("larger_pages").activation({}) is not None
    assert "### larger_pages" in page()


def test_an_optimization_that_needs_no_more_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (SOURCES / "optimize/catalogue/system/thread_count.py").read_text()
    text = text.replace('"thread_count"', '"more_threads"').replace("class ThreadCount", "class MoreThreads")
    (tmp_path / "more_threads.py").write_text(text)
    _beside("hotloop.optimize.catalogue.system", tmp_path, monkeypatch)
    assert optimize.get("more_threads").name == "more_threads"


def test_no_module_names_a_rule_or_a_row_to_list_it() -> None:
    """Outside its own folder a row's class is named where another row derives from it, and nowhere else."""
    rows = {cls.__name__ for classes in optimize.built_in().values() for cls in classes}
    lists = [SOURCES / f"{room}/check/registry.py" for room in ("lint", "diagnose")]
    lists += [SOURCES / "optimize/registry.py", SOURCES / "optimize/pages.py"]
    lists += [
        file for room in ("lint", "diagnose") for file in (SOURCES / room / "rules").rglob("__init__.py")
    ]
    lists += (SOURCES / "optimize/catalogue").rglob("__init__.py")
    codes = {rule.code.replace("-", "_") for rule in (*lint.all_rules(), *diagnose.all_rules())}
    for file in lists:
        words = set(file.read_text().replace(".", " ").replace(",", " ").replace('"', " ").split())
        assert not words & (rows | codes), file


@pytest.mark.parametrize("packed", [False, True], ids=["a folder", "a zip file"])
def test_members_come_by_name_and_a_folder_by_its_module(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"made_package_{packed}"
    for file in ("__init__", "gamma", "alpha", "beta/__init__", "beta/row", "beta/helper"):
        path = tmp_path / name / f"{file}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    place = str(tmp_path)
    if packed:
        place = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, name)
    monkeypatch.syspath_prepend(place)
    found = [module.__name__.removeprefix(f"{name}.") for module in members(name, of_folder="row")]
    assert found == ["alpha", "beta.row", "gamma"]
    assert [module.__name__.removeprefix(f"{name}.") for module in members(name)] == ["alpha", "gamma"]
