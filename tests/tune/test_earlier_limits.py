"""What `diagnose` measured of the same program goes into a session of `tune`, and into no other."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hotloop.machine.host.identity import identity
from hotloop.model.ceilings import Ceilings, Prediction
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate
from hotloop.model.origin import CodeState, Origin
from hotloop.model.ratio import Ratio
from hotloop.store.session import new_session
from hotloop.tune.session.earlier import with_earlier_limits

from .sessions import Simulation
from .simulated import STEP_S, Truth, observation

WORDS = ("python", "train.py")
PREDICTED = Ratio(1.8, 1.6, 2.0)


def _origin(kind: str = "diagnose", **changes: Any) -> Origin:
    values = {
        "words": WORDS,
        "folder": "/p",
        "began": "2026-11-22T03:32:04+00:00",
        "hotloop_version": "0.1.0",
        "code": CodeState(commit="c0ffee", branch="main"),
        "packages": {"torch": "2.13.0"},
        **changes,
    }
    return Origin(kind=kind, **values)


def _diagnosed(**changes: Any) -> Observation:
    values = {
        "machine": msgspec.to_builtins(identity()),
        "ceilings": Ceilings(compute_samples_per_s=431.0),
        "predictions": (Prediction(name="b", ratio=PREDICTED, method="switched"),),
        **changes,
    }
    return msgspec.structs.replace(observation(), **values)


def _store(folder: Path, seen: Observation, of: Origin) -> None:
    with contextlib.closing(new_session(folder, "earlier")) as session:
        session.put("origin", of)
        session.put("observation", seen)


def _slower() -> Any:
    step = observation().step
    assert step is not None
    return msgspec.structs.replace(step, median_s=1.3 * STEP_S)


def test_limits_of_the_same_program_are_used_and_it_is_said_whose_they_are(tmp_path: Path) -> None:
    _store(tmp_path, _diagnosed(), _origin())
    seen = with_earlier_limits(observation(), _origin("tune"), tmp_path)
    assert (seen.ceilings, seen.predictions) == (_diagnosed().ceilings, _diagnosed().predictions)
    assert seen.coverage[-1].why == "they are those of session earlier"


@pytest.mark.parametrize(
    ("seen", "of"),
    [
        ({}, {"words": ("python", "other.py")}),
        ({}, {"code": CodeState(commit="c0ffee", branch="main", diff_sha256="1")}),
        ({}, {"packages": {"torch": "2.12.0"}}),
        ({}, {"kind": "observe"}),
        ({"machine": {"cpu_model": "another"}}, {}),
        ({"program": msgspec.structs.replace(observation().program, script_sha256="1" * 64)}, {}),
        ({"step": _slower()}, {}),
        ({"ceilings": None, "predictions": ()}, {}),
    ],
    ids=["command", "code", "packages", "kind", "machine", "script", "pace", "nothing measured"],
)
def test_limits_of_another_one_are_not(seen: dict[str, Any], of: dict[str, Any], tmp_path: Path) -> None:
    _store(tmp_path, _diagnosed(**seen), _origin(**of))
    assert with_earlier_limits(observation(), _origin("tune"), tmp_path) == observation()


def test_what_was_predicted_stands_beside_what_was_measured() -> None:
    predicted = Candidate(name="b", predicted=PREDICTED)
    result = Simulation(Truth(factors={"b": 1.7})).run([predicted, Candidate(name="a")])
    assert {one.candidate.name: one.predicted for one in result.trials} == {"a": None, "b": PREDICTED}
