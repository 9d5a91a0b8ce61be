"""The table of published scripts: each can be fetched, has data, and is tuned by hand with what the catalogue has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.published.__main__ import summary
from benchmarks.published.compare import Ending, Row, exact_plan
from benchmarks.published.corpus import CORPUS, Entry
from benchmarks.published.data import MAKERS, make
from benchmarks.published.place import Absent, lay_out

from hotloop.optimize import registry
from hotloop.tune.plan.plan_file import read_plan


def test_there_are_scripts_of_more_than_twenty_repositories() -> None:
    assert len({entry.name for entry in CORPUS}) == len(CORPUS)
    assert len({entry.repository for entry in CORPUS}) > 20


@pytest.mark.parametrize("entry", CORPUS, ids=lambda entry: entry.name)
def test_an_entry_says_what_is_fetched_and_picks_from_the_catalogue(entry: Entry) -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", entry.commit)
    assert re.compile(entry.loss).groups == 1
    assert entry.data is None or entry.data in MAKERS
    for pick in entry.by_hand:
        assert registry.get(pick.name) is not None


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.slow
def test_made_data_is_the_same_every_time(name: str, tmp_path: Path) -> None:
    for twin in ("one", "other"):
        make(name, tmp_path / twin)
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert len(files) > 1
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "other" / path).read_bytes()


def test_a_script_runs_in_a_copy_with_its_data(tmp_path: Path) -> None:
    entry = Entry(
        name="x", repository="a/b", commit="0" * 40, script="code/train.py", data="text", arguments=("{data}/text.txt",)
    )  # fmt: skip
    with pytest.raises(Absent, match="no sources of a/b"):
        lay_out(entry, tmp_path, None, tmp_path / "work")
    source = tmp_path / "a+b" / "code"
    source.mkdir(parents=True)
    (source / "train.py").touch()
    program = lay_out(entry, tmp_path, None, tmp_path / "work")
    assert program.argv[1] == "train.py"
    assert Path(program.argv[2]).exists()
    assert program.folder == tmp_path / "work" / "repository" / "code"
    assert list(source.iterdir()) == [source / "train.py"]


@pytest.mark.parametrize(
    ("observed", "verdict"),
    [
        (Ending(0, "1.5", 1.0, ""), "same"),
        (Ending(1, "1.5", 1.0, ""), "died under observe"),
        (Ending(0, "1.4", 1.0, ""), "another loss under observe"),
    ],
)
def test_what_a_comparison_says(observed: Ending, verdict: str) -> None:
    entry = Entry(name="x", repository="a/b", commit="0" * 40, script="train.py", seeded=True)
    row = Row(entry, {"alone": Ending(0, "1.5", 1.0, ""), "observe": observed})
    assert row.verdict() == verdict
    assert row.differs() == (verdict != "same")


def test_the_plan_that_scripts_are_run_with_is_one(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(exact_plan())
    assert len(read_plan(tmp_path / "plan.toml").steps) == 2


def test_scripts_and_repositories_are_counted_apart() -> None:
    alone = Ending(0, "1.5", 1.0, "")
    rows = [
        Row(
            Entry(name=name, repository=repository, commit="0" * 40, script="train.py", seeded=True),
            {"alone": alone, "observe": Ending(code, "1.5", 1.0, "")},
        )
        for name, repository, code in (("x", "a/b", 0), ("y", "a/b", 1), ("z", "c/d", 0))
    ]
    said = summary(rows)
    assert "3 scripts of 2 repositories ran whole" in said
    assert "2 of 3 scripts ended the same, all those of 1 of 2 repositories" in said
