"""`hotloop report` and `hotloop sessions` on stored sessions."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import msgspec
import pytest

from hotloop.cli.app import run
from hotloop.machine.card import cache
from hotloop.model.quantities import duration
from hotloop.model.tuning import LikelyPlan
from hotloop.store.session import Session, new_session, sessions

from ..report.rich_session import card, content


def _store(folder: Path, stamp: str, *, tuned: bool, at_s: int) -> None:
    said = content(40, tuned=tuned)
    with contextlib.closing(new_session(folder, stamp)) as session:
        session.put("origin", said.origin)
        session.put("observation", said.observation)
        if tuned:
            session.put("result", said.tuning)
    os.utime(session.path, (at_s, at_s))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three sessions, the last one of tuning."""
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        _store(tmp_path, f"2026112{number}-100000", tuned=number == 2, at_s=1_700_000_000 + number)
    return tmp_path


def _names(folder: Path) -> list[str]:
    return [path.stem for path in sessions(folder)]


def test_the_newest_session_is_reported_in_every_form(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", "--html", "r.html", "--markdown", "r.md", "--json", "r.json", "--price-per-hour", "4"]
    assert run(words) == 0
    assert "2.82x as fast [2.71, 2.96]" in capsys.readouterr().out
    figures = json.loads((folder / "r.json").read_text())
    assert figures["headline"]["speedup"]["ratio"] == pytest.approx(2.82, abs=0.01)
    assert figures["savings"]["money"] is not None
    assert figures["observation"]["series"] == []
    assert "Switch on" in (folder / "r.md").read_text()
    assert (folder / "r.html").stat().st_size < 6e6


@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize("here", [True, False], ids=["here", "elsewhere"])
def test_a_roofline_is_of_the_machine_of_the_session_or_it_is_missing(
    measured: bool, here: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = measured and here
    monkeypatch.setattr(cache, "kept_card", lambda: card() if measured else None)
    this = card().identity if here else msgspec.structs.replace(card().identity, num_cores=96)
    monkeypatch.setattr(cache, "identity", lambda: this)
    assert run(["report", "--json", "r.json"]) == 0
    missing = {one["what"] for one in json.loads((folder / "r.json").read_text())["missing"]}
    assert ("roofline" in missing) is not known


def test_sessions_are_listed_the_newest_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "--json", "all.json"]) == 0
    said = capsys.readouterr().out
    assert "2.82x as fast [2.71, 2.96]" in said
    assert "134 ms a step" in said
    listed = json.loads((folder / "all.json").read_text())["sessions"]
    assert [one["name"] for one in listed] == ["20261122-100000", "20261121-100000", "20261120-100000"]
    assert [one["kind"] for one in listed] == ["tune", "observe", "observe"]


def test_a_session_that_was_gone_on_with_is_first_and_the_time_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oldest = sessions(folder)[-1]
    os.utime(oldest, (1_700_086_400, 1_700_086_400))
    assert run(["sessions"]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    times = [line.split()[1] for line in lines if line.startswith("2026")]
    assert "times are of the last update" in said
    assert lines[0].startswith(oldest.stem)
    assert times == sorted(times, reverse=True)
    assert times[0] != times[1]


def test_reading_an_old_session_does_not_make_it_the_newest(folder: Path) -> None:
    before = _names(folder)
    assert run(["report", before[-1], "--quiet"]) == 0
    assert _names(folder) == before


def test_sessions_are_removed_with_what_belongs_to_them(folder: Path) -> None:
    oldest, newest = _names(folder)[-1], _names(folder)[0]
    (folder / ".hotloop" / f"{oldest}.html").write_text("a page")
    (folder / ".hotloop" / oldest / "files").mkdir(parents=True)
    assert run(["sessions", "--remove", oldest]) == 0
    assert not list((folder / ".hotloop").glob(f"{oldest}*"))
    assert run(["sessions", "--keep", "1"]) == 0
    assert _names(folder) == [newest]


def test_a_session_that_holds_nothing_is_none_to_keep(folder: Path) -> None:
    newest = _names(folder)[0]
    Session(folder / ".hotloop" / "20991231-000000.sqlite").close()
    assert _names(folder)[0] == "20991231-000000"
    assert run(["sessions", "--keep", "1"]) == 0
    assert _names(folder) == [newest]


def test_a_session_that_another_hotloop_is_at_is_left(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oldest = _names(folder)[-1]
    with contextlib.closing(Session(folder / ".hotloop" / f"{oldest}.sqlite")) as running:
        running.claim()
        assert run(["sessions", "--keep", "0"]) == 0
        assert f"session {oldest} is being used by another hotloop" in capsys.readouterr().err
        assert run(["sessions", "--remove", oldest]) == 2
        assert "wait until that one is done" in capsys.readouterr().err
        running.put("still", "there")
        assert _names(folder) == [oldest]
    assert run(["sessions", "--keep", "0"]) == 0
    assert [file.name for file in (folder / ".hotloop").iterdir()] == [".gitignore"]


def test_a_session_that_is_not_there_cannot_be_removed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sessions", "--remove", "../../etc"]) == 2
    assert "no session" in capsys.readouterr().err


def test_a_session_in_which_nothing_was_measured_is_passed_over(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.closing(new_session(folder, "20261130-100000")) as session:
        session.put("origin", content(40).origin)
    (folder / ".hotloop" / "20261130-110000.sqlite").write_bytes(b"SQLite format 3\0 torn")
    assert run(["report"]) == 0
    told = capsys.readouterr()
    assert "2.82x as fast [2.71, 2.96]" in told.out
    assert "2 newer sessions skipped: nothing was measured there" in told.err
    assert run(["report", "20261130-100000"]) == 2, "the one that is named is meant"
    assert "holds no measurement" in capsys.readouterr().err


def test_a_list_says_what_is_likely_and_the_mean_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = content(40)
    assert said.tuning is not None
    assert said.observation is not None
    assert said.observation.step is not None
    bare = msgspec.structs.replace(
        said.tuning, plan=msgspec.structs.replace(said.tuning.plan, steps=(), speedup=None), likely=()
    )
    likely = LikelyPlan(steps=(), ratio=1.31, low=1.0, high=1.7, reason="too few sets", resume="")
    results = {"a": bare, "b": msgspec.structs.replace(bare, likely=(likely,)), "c": None}
    for name, result in results.items():
        with contextlib.closing(new_session(tmp_path, name)) as session:
            session.put("observation", said.observation)
            if result is not None:
                session.put("result", result)
    assert run(["sessions"]) == 0
    listed = " ".join(capsys.readouterr().out.split())
    assert "nothing was proven faster" in listed
    assert "likely 1.31x, not proven" in listed
    assert f"{duration(said.observation.step.whole_s)} a step (mean)" in listed
