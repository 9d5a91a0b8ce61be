"""What the house demands of every optimization of the catalogue."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize import registry
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.pages import page
from hotloop.optimize.pages import page as optimizations_page
from hotloop.probe.activation.activation import Activation

from .harness import loader, observation, optimizer, root

ROOT = Path(__file__).parents[2]
BUILT_IN = [(family, cls) for family, classes in registry.built_in().items() for cls in classes]
each = pytest.mark.parametrize(("family", "cls"), BUILT_IN, ids=[cls.name for _, cls in BUILT_IN])

OBSERVATIONS = [
    observation(loaders=(loader(num_iterators=2),), optimizers=(optimizer(),)),
    observation(
        {Phase.DATA: 0.2, Phase.TRANSFER: 0.1, Phase.FORWARD: 0.3, Phase.BACKWARD: 0.2, Phase.OPTIMIZER: 0.2},
        loaders=(loader(num_workers=2, num_iterators=2),),
        optimizers=(optimizer(),),
        roots=(root(layer_counts={"Conv2d": 1, "Conv3d": 1}),),
        device="cuda",
    ),
    observation(anomaly_mode=True),
    observation(shares={}, roots=(), machine={}),
]
"""Programs of several kinds; the last one was hardly measured at all."""


def answer(optimization: Optimization, seen: Observation) -> tuple[Sequence[Candidate], str]:
    """Return the candidates, or the reason why there are none."""
    try:
        return optimization.candidates(seen), ""
    except DoesNotApply as refusal:
        return [], str(refusal)


@each
def test_its_manual_page_says_what_the_house_wants(family: str, cls: type[Optimization]) -> None:
    manual = cls.manual()
    for section in ("What it", "Why it is faster:", "When it does not help:", "Effect on numerics:"):
        assert section in manual, f"{cls.name} does not say: {section}"
    assert "Example:" in manual
    assert "References:" in manual
    summary = manual.split("\n\n")[0]
    assert summary.endswith(".")
    assert "\n" not in summary


@each
def test_it_stands_in_its_family_s_folder(family: str, cls: type[Optimization]) -> None:
    assert cls.family == family
    assert cls.__module__.startswith(f"hotloop.optimize.catalogue.{family}.")
    assert isinstance(cls.numerics, Numerics)
    assert cls.__module__.split(".")[4] in {cls.name, "channels_last"}


@each
def test_candidates_are_plans_that_validate_and_activate(family: str, cls: type[Optimization]) -> None:
    optimization = cls()
    for candidate in [candidate for seen in OBSERVATIONS for candidate in answer(optimization, seen)[0]]:
        assert candidate.name == cls.name
        optimization.validate(candidate.params)
        environment = optimization.environment(candidate.params)
        assert all(isinstance(value, str) for value in environment.values())
        activation = optimization.activation(candidate.params)
        assert isinstance(activation, Activation)
        assert activation.effect()[1]
        assert candidate.prior > 0
        assert candidate.max_gain is None or candidate.max_gain >= 1.0
        assert candidate.max_gain is None or candidate.prior <= candidate.max_gain * 1.0001


@each
def test_it_answers_with_candidates_or_a_reason(family: str, cls: type[Optimization]) -> None:
    for seen in OBSERVATIONS:
        candidates, reason = answer(cls(), seen)
        assert bool(candidates) != bool(reason)
        assert not reason.endswith(".")


@each
def test_unknown_parameters_are_refused(family: str, cls: type[Optimization]) -> None:
    with pytest.raises(ValueError, match="unknown parameter 'no_such'"):
        cls().validate({"no_such": 1})


def test_names_are_unique_and_conflicts_are_real_and_on_both_pages() -> None:
    classes = {cls.name: cls for _, cls in BUILT_IN}
    assert len(classes) == len(BUILT_IN)
    pages = optimizations_page().split("\n### ")
    entries = {page.partition("\n")[0]: page for page in pages}
    for name, cls in classes.items():
        for other in cls.conflicts:
            assert other in classes
            assert f"`{other}`" in entries[name]
            assert f"`{name}`" in entries[other], "one of the two says it"


def test_the_catalogue_is_imported_without_torch() -> None:
    """`hotloop explain` must not wait for it; in the user's process we may not be the first to import it."""
    code = "import sys, hotloop.optimize.registry as r; r.all_optimizations(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_file_of_the_catalogue_can_be_imported() -> None:
    folder = ROOT / "src" / "hotloop"
    for path in (folder / "optimize" / "catalogue").rglob("*.py"):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        assert importlib.import_module(name).__doc__, f"{path} does not say what it is"


def test_the_page_in_the_documentation_is_up_to_date() -> None:
    written = (ROOT / "docs" / "optimizations.md").read_text()
    assert written == page(), "run: python -m hotloop.optimize.pages docs/optimizations.md"
    assert written.count("\n### ") == len(BUILT_IN)
