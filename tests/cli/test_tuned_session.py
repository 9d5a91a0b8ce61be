"""Tuning on the simulated machine, stored as real sessions are, and reported end to end: nothing stored is left out."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hotloop.cli.app import run
from hotloop.model.deep import Deep, HostSamples
from hotloop.store.session import Session, new_session
from hotloop.tune.executor import RanSet, SwitchRecord

from ..tune.sessions import Simulation, reasons
from ..tune.simulated import Truth, candidates, observation

KNOBS = {"knob", "idle"}
PLAN = ["knob", "arm"]
TRUTH = Truth(factors={"knob": 1.3, "arm": 1.4, "slower": 0.8}, ineffective=frozenset({"idle"}))


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Two knobs were switched, two changes tried in arms; `knob` was proven first, then `arm` and `knob` together."""
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(new_session(tmp_path, "s")) as made:
        simulation = Simulation(TRUTH, journal=made, switchable=lambda one: one.name in KNOBS)
        made.put("observation", observation())
        result = simulation.run(candidates("knob", "idle", "arm", "slower"))
        assert reasons(result).keys() == {"idle", "slower"}
        made.put("result", result)
        yield made


def _figures() -> dict[str, Any]:
    words = ["report", "--html", "r.html", "--markdown", "r.md", "--json", "r.json", "--csv", "raw"]
    assert run(words) == 0
    found: dict[str, Any] = json.loads(Path("r.json").read_text())
    return found


def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path("raw", name).open()))


def _sets(session: Session, begin: str) -> list[RanSet]:
    found = [session.get(key, RanSet) for key in session.keys(begin)]
    assert all(found)
    return [one for one in found if one is not None]


def _plans(ran: RanSet) -> list[list[str]]:
    return [[step.label for step in plan] for plan in ran.order.plans]


def _confirmed(session: Session) -> list[RanSet]:
    """The sets that hold the plan."""
    return [ran for ran in _sets(session, "confirm|") if PLAN in _plans(ran)]


def test_the_proof_is_shown_with_every_block_of_its_sets(session: Session) -> None:
    confirmed = _confirmed(session)
    assert len(confirmed) > 1
    blocks = [float(row["ratio"]) for row in _rows_after_report("blocks.csv", "the plan, confirmed")]
    expected = []
    for one in confirmed:
        at = _plans(one).index(PLAN)
        expected += [times[0] / times[at] for times in one.record.rounds]
    assert blocks == pytest.approx(expected)
    assert f"The confirmation: {len(confirmed)} sets of fresh processes" in Path("r.html").read_text()


def _rows_after_report(file: str, candidate: str) -> list[dict[str, str]]:
    _figures()
    return [row for row in _rows(file) if row["candidate"] == candidate]


def test_every_original_of_floor_contests_and_proof_is_in_the_band_of_losses(session: Session) -> None:
    plain = perturbed = 0
    for one in [ran for begin in ("floor", "compare|", "confirm|") for ran in _sets(session, begin)]:
        for at in one.record.originals(one.order):
            perturbed += at in one.order.perturbed
            plain += at not in one.order.perturbed
    losses = _figures()["losses"]
    assert 1 + len(losses["repeats"]) == plain
    assert perturbed
    assert losses["perturbed"]
    assert len(losses["plan"]) == len(_confirmed(session))


def test_what_was_switched_is_shown_hold_by_hold(session: Session) -> None:
    records = {key: session.get(key, SwitchRecord) for key in session.keys("switch")}
    assert records
    figures = _figures()
    for key, record in records.items():
        assert record is not None
        assert [(tuple(one["on"]), tuple(one["steps_s"])) for one in figures["held"][key]] == [
            (hold.on, hold.steps_s) for hold in record.holds
        ]
        rows = [row for row in _rows("holds.csv") if row["process"] == key]
        assert len(rows) == sum(len(hold.steps_s) for hold in record.holds)
        assert f"The median step of each of {len(record.holds)} holds" in Path("r.html").read_text()


class TestLooks:
    """Detailed profiling of the original and of the plan in a set of the confirmation."""

    def _look(self, session: Session, number: int, *, plan: bool) -> None:
        key = sorted(session.keys("confirm|"))[number]
        ran = session.get(key, RanSet)
        assert ran is not None
        arms = list(ran.record.arms)
        for at in (0, len(arms) - 1) if plan else (0,):
            host = HostSamples(
                num_steps=number + 1, window_s=1.0, interval_s=0.01, lines=(), frames=(), samples=()
            )
            arms[at] = msgspec.structs.replace(arms[at], deep=Deep(host=host))
        record = msgspec.structs.replace(ran.record, arms=tuple(arms))
        session.put(key, RanSet(order=ran.order, record=record))

    def test_both_are_of_the_set_that_holds_both(self, session: Session) -> None:
        self._look(session, 0, plan=False)
        self._look(session, 1, plan=True)
        figures = _figures()
        assert figures["observation"]["deep"]["host"]["num_steps"] == 2
        assert figures["after"]["host"]["num_steps"] == 2
        assert not any("with the plan on" in gap["what"] for gap in figures["missing"])

    def test_a_plan_that_was_not_looked_at_is_said(self, session: Session) -> None:
        self._look(session, 1, plan=False)
        figures = _figures()
        assert figures["observation"]["deep"]["host"]["num_steps"] == 2
        assert figures["after"] is None
        assert any("with the plan on" in gap["what"] for gap in figures["missing"])

    def test_the_original_beside_a_plan_that_became_smaller_is_shown(self, session: Session) -> None:
        self._look(session, 0, plan=True)
        key = sorted(session.keys("confirm|"))[0]
        ran = session.get(key, RanSet)
        assert ran is not None
        plans = tuple((*plan, *candidates("dropped")) if plan else plan for plan in ran.order.plans)
        session.put(key, RanSet(order=msgspec.structs.replace(ran.order, plans=plans), record=ran.record))
        figures = _figures()
        assert figures["observation"]["deep"]["host"]["num_steps"] == 1
        assert figures["after"] is None
