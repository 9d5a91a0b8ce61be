"""Tracers, scripts, exports and copies find what they find without us while a profiling window is open, too."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from hotloop.observe.profile.windows import ALL, orders
from hotloop.probe.control.control_page import DEEP, DEEP_EVERY, DEEP_KIND, DEEP_SLOT, ControlPage
from hotloop.probe.control.step_boundary import KINDS
from hotloop.probe.process.config import ProbeConfig

from .conftest import with_probe
from .test_readers import Results, cases, run_readers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
LEAVES_ALONE = "compiled"
"""Instruments that look at modules or operators leave a program alone that compiles, and say so."""
_WHEN = ("in training", "after")


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What the readers find without us."""
    return run_readers("plain", tmp_path_factory.mktemp("without"), dict(os.environ))


@pytest.fixture(scope="module", params=ALL)
def looked_at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What they find where one instrument looks from the first step on."""
    folder = tmp_path_factory.mktemp(request.param)
    probe = folder / "probe"
    config = ProbeConfig(folder=str(probe), sites=True, instruments=orders([request.param]))
    environment = with_probe(probe, config)
    page = ControlPage(probe / "control")
    page.numbers[DEEP_KIND], page.numbers[DEEP_SLOT] = KINDS["optimizer"], -1
    # No window of this program ends: its steps are too few for one.
    page.numbers[DEEP_EVERY] = 1000
    page.numbers[DEEP] = 1
    page.close()
    found = run_readers("plain", folder, environment)
    (written,) = probe.glob("deep-*.json")
    seen: dict[str, Any] = json.loads(written.read_text())
    assert seen["error"] is None or LEAVES_ALONE in seen["error"]
    # The process ended the window: it was open all the time.
    assert seen["steps"] == 0
    return found


@pytest.mark.parametrize("name", cases(*_WHEN))
def test_what_is_read_is_the_same(without: Results, looked_at: Results, name: str) -> None:
    assert looked_at[name]["always"] == without[name]["always"], looked_at[name].get("error")
