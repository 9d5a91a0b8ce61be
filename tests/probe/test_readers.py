"""Tracers, scripts, exports, copies, and code that counts frames, find with the probe inside what they find without.

While the program is observed, while it is tuned (activations act, a seed is set, losses are kept), and with a plan on.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from hotloop.observe.decode.processes import read_processes
from hotloop.optimize import registry
from hotloop.probe.process.config import ProbeConfig

from .conftest import run_python, with_probe

pytestmark = pytest.mark.slow
_PROGRAM = Path(__file__).with_name("readers")


def cases(*when: str) -> list[str]:
    """Return the readers' names with when they read."""
    return [f"{path.stem} {each}" for path in sorted(_PROGRAM.glob("cases/*.py")) for each in when]


_CASES = cases("before", "in training", "after")
_ONCE = sorted(path.stem for path in _PROGRAM.glob("once/*.py"))
_ROOTS = ["plain", "lightning", "hugging_face"]
Results = dict[str, dict[str, Any]]


def run_readers(root: str, folder: Path, environment: dict[str, str]) -> Results:
    """Return what the readers find of one root."""
    folder.mkdir(exist_ok=True)
    done = run_python([str(_PROGRAM), root, str(folder / "results.json"), str(folder)], environment, folder)
    assert done.returncode == 0, done.stderr
    # Where the call itself is looked at or changed, a frame of ours stands for this one of torch's.
    text = re.sub(r'\["root.py", "_(acted|looked_at)"\]', '["module.py", "_call_impl"]', _read(folder))
    results: Results = json.loads(text)
    return results


def _read(folder: Path) -> str:
    return (folder / "results.json").read_text()


def _orders(*names: str) -> tuple[dict[str, Any], ...]:
    classes = {name: type(registry.get(name)) for name in names}
    return tuple(
        {"name": name, "module": cls.__module__, "cls": cls.__name__, "params": {}}
        for name, cls in classes.items()
    )


def _configs(folder: Path) -> dict[str, ProbeConfig]:
    acting = _orders("autocast_bf16", "fused_optimizer", "persistent_workers")
    tuning = str(folder / "probe tuning")
    return {
        "observing": ProbeConfig(folder=str(folder / "probe observing"), sites=True),
        "tuning": ProbeConfig(folder=tuning, activations=acting, seed=1, losses=True, lean=False),
        "with a plan": ProbeConfig(folder=str(folder / "probe plan"), activations=acting, record=False),
    }


class Seen:
    """What one root's readers found without us and, by name, with us; and what the probe noted of itself."""

    def __init__(self, root: str, folder: Path) -> None:
        folder.mkdir()
        self.without = run_readers(root, folder / "without", dict(os.environ))
        self.probed: dict[str, Results] = {}
        self.facts: dict[str, list[dict[str, Any]]] = {}
        for name, config in _configs(folder).items():
            own = Path(str(config.folder))
            self.probed[name] = run_readers(root, folder / name, with_probe(own, config))
            self.facts[name] = [facts for facts in read_processes(own).values() if facts["steps"]]


@pytest.fixture(scope="module")
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The same program four times."""
    return Seen(request.param, tmp_path_factory.mktemp("readers") / request.param)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seen", _ROOTS, indirect=True)
@pytest.mark.parametrize("how", ["observing", "tuning", "with a plan"])
@pytest.mark.parametrize("name", [*_CASES, *_ONCE])
def test_what_is_read_is_the_same(seen: Seen, how: str, name: str) -> None:
    if name in _ONCE and name not in seen.without:
        pytest.skip("looked at once, with the plain root")
    without, probed = seen.without[name], seen.probed[how][name]
    assert probed["always"] == without["always"], probed.get("error")
    if how == "observing":
        assert probed["observing"] == without["observing"]


@pytest.mark.parametrize("seen", _ROOTS, indirect=True)
def test_the_probe_was_inside_and_nothing_of_it_failed(seen: Seen) -> None:
    for how, facts in seen.facts.items():
        (process,) = facts
        assert process["steps"] >= 12, how
        assert process["notes"] == [], how
        effects = {effect["name"]: effect["on"] for effect in process["effects"]}
        assert how == "observing" or effects["autocast_bf16"], effects
