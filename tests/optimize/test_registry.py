"""The registry: what can be tried, by name, built in or from another package."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from hotloop.model.errors import HotloopError
from hotloop.optimize import registry


def plugin(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, registry.GROUP)


def test_every_optimization_is_found_by_its_name() -> None:
    for optimization in registry.all_optimizations():
        assert type(registry.get(optimization.name)) is type(optimization)


def test_an_unknown_name_gets_near_matches() -> None:
    with pytest.raises(HotloopError, match="no optimization named 'autocast_fb16'") as caught:
        registry.get("autocast_fb16")
    assert "autocast_bf16" in caught.value.hint


def test_a_name_like_nothing_gets_the_list() -> None:
    with pytest.raises(HotloopError) as caught:
        registry.get("zzz")
    assert "loader_workers" in caught.value.hint


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        (plugin("lost", "no_such_module:Thing"), "ModuleNotFoundError"),
        (plugin("wrong", "collections:Counter"), "not a subclass"),
        (
            plugin("other", "hotloop.optimize.catalogue.precision.autocast_bf16:AutocastBf16"),
            "named 'other', the optimization 'autocast_bf16'",
        ),
        (
            plugin("autocast_bf16", "hotloop.optimize.catalogue.precision.autocast_bf16:AutocastBf16"),
            "is taken",
        ),
    ],
)
def test_a_broken_plugin_is_reported_and_left_out(
    point: EntryPoint, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_entry_points", lambda: [point])
    (refusal,) = registry.broken_plugins()
    assert refusal.name == point.name
    assert reason in refusal.reason
    assert registry.get("loader_workers").name == "loader_workers"


def test_asking_for_a_broken_plugin_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entry_points", lambda: [plugin("lost", "no_such_module:Thing")])
    with pytest.raises(HotloopError) as caught:
        registry.get("lost")
    assert "could not be loaded" in caught.value.hint


def test_a_plugin_is_as_good_as_a_built_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entry_points", lambda: [plugin("mine", f"{__name__}:Mine")])
    assert registry.get("mine").name == "mine"
    assert registry.all_optimizations()[-1].name == "mine"
    assert registry.broken_plugins() == ()


class Mine(type(registry.get("autocast_bf16"))):  # type: ignore[misc]
    """A plug-in."""

    name = "mine"
