"""Every way of writing in every set-up, by namespaces and by the guard: nothing changes, or it is refused before."""

from __future__ import annotations

import os

import pytest

from hotloop.launch.isolation.decide import NO_NAMESPACES, check_covered
from hotloop.model.errors import HotloopError
from tests.attack.counts import count
from tests.attack.running import NOT_REDIRECTED, NOT_RENAMED, attack
from tests.attack.setups import ROOT_SETUPS, SETUPS

pytestmark = [pytest.mark.attack, pytest.mark.slow]
NAMES = [*SETUPS, *(ROOT_SETUPS if os.getuid() == 0 else ())]


@pytest.mark.parametrize("mode", ["namespaces", "guard"])
def test_nothing_changes_in_any_set_up(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mode == "guard":
        monkeypatch.setenv(NO_NAMESPACES, "1")
    tried = held = refused = 0
    differences: dict[str, set[str]] = {}
    unseen: dict[str, str] = {}
    for name in NAMES:
        with {**SETUPS, **ROOT_SETUPS}[name]() as setup:
            done = attack(setup)
        tried += len(done.outcomes)
        if done.isolation.uncovered is not None:
            with pytest.raises(HotloopError, match="your files cannot be kept safe here"):
                check_covered(done.isolation, allow_writes=False)
            refused += 1
            held += len(done.outcomes)
            continue
        if done.differences:
            differences[name] = done.differences
        else:
            held += len(done.outcomes)
        allowed = NOT_REDIRECTED if mode == "guard" else NOT_RENAMED if os.getuid() else set[str]()
        unseen |= {
            f"{name}: {way}": outcome
            for way, outcome in done.outcomes.items()
            if outcome != "ok" and way not in allowed
        }
    note = f"{len(NAMES)} set-ups, {refused} of them refused beforehand, {len(unseen)} writes not seen by the program"
    count(f"ways of writing, {mode}", tried, held, note)
    assert tried >= len(NAMES) * 27
    assert not differences
    assert not unseen
