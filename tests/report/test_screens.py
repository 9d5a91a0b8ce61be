"""What holds of every screen: width, units, plurals, sums, and none of our internal names."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from .snapshots import FOLDER

README = (Path(__file__).parents[2] / "README.md").read_text()
SHOWN = re.findall(r"<!-- screen: (\w+) -->\n```console\n(.*?)```", README, re.DOTALL)
SCREENS = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.txt"))} | {
    f"README's {name}": text for name, text in SHOWN
}
INTERNAL = re.compile(
    r"foreign_share|monitors\.metrics|\b(deep|phases|program|run|step|efficiency)\.\w+|_ratio\b|\bNone\b|deep window"
)
EXPONENT = re.compile(r"\d[eE][+-]\d\d")
ONE_OF_MANY = re.compile(r"(?<![\d.,])1 (?!samples/s\b|tokens/s\b)[a-z]{3,}[^su\W]s\b(?!/)")
TOTAL = re.compile(r"^(mean step|whole run)\s+([\d.,]+) (\w+)\s+100%$")
PART = re.compile(r"^(?! )[\w,/ -]+?\s+([\d.,]+) (\w+)\s+([\d.]+)%")

PHASE = re.compile(r"([\d.]+) \w+ \(([\d.]+)%\)")
STEP = re.compile(r"^step +([\d.]+) ms, the mean of", re.MULTILINE)
COST = re.compile(r"(\d+)% of the step \(([\d.]+) ms\)")
GAIN = re.compile(r"costs (?:about )?([\d.]+) ms a step(?: \[[^]]*\])? gain (?:perhaps )?([\d.]+)x")
LABEL = re.compile(
    r"^([a-z][a-z ]*?) {2,}\S|(?<=\n\n)([a-z ]+)$|^  (where|seen|costs|gain|do|try it) {2,}|^(\w+)\[[\w-]+\] ",
    re.MULTILINE,
)
"""What stands at the beginning of a line: of a row of facts or a heading, of a line of a finding, its severity."""
DEVICE = re.compile(r"^(span|busy|idle)\s+([\d.]+)\s", re.MULTILINE)


@pytest.fixture(params=SCREENS)
def screen(request: pytest.FixtureRequest) -> str:
    """The text of one screen."""
    return SCREENS[request.param]


def test_there_are_screens() -> None:
    assert len(SHOWN) == 2
    assert len(SCREENS) > 40


@pytest.mark.parametrize(("name", "text"), SHOWN)
def test_the_readme_shows_what_is_printed_today(name: str, text: str) -> None:
    """Its screens are real ones of some day; the snapshots are of today."""
    printed = set[str]().union(*(_labels(screen) for screen in SCREENS.values() if screen != text))
    labels = _labels(text)
    assert len(labels) > 5
    assert labels <= printed, name


def test_no_line_is_over_the_width(screen: str) -> None:
    assert [line for line in screen.splitlines() if len(line) > 80] == []


def test_there_are_no_blanks_at_line_ends(screen: str) -> None:
    assert [line for line in screen.splitlines() if line != line.rstrip()] == []


def test_internal_names_are_not_shown(screen: str) -> None:
    assert INTERNAL.findall(screen) == []


def test_numbers_have_no_exponent(screen: str) -> None:
    assert EXPONENT.findall(screen) == []


def test_one_of_a_kind_is_singular(screen: str) -> None:
    assert ONE_OF_MANY.findall(screen) == []


def test_parts_add_up_to_their_whole(screen: str) -> None:
    lines = screen.splitlines()
    for at, line in enumerate(lines):
        if whole := TOTAL.match(line):
            parts = _parts_of(lines[at + 1 :])
            assert {unit for _, unit, _ in parts} == {whole[3]}
            assert sum(time for time, _, _ in parts) == Decimal(whole[2])
            assert sum(share for _, _, share in parts) == 100


def test_phases_of_a_report_are_the_whole_step(screen: str) -> None:
    lines = screen.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("phase ") and "speed" not in line and PHASE.search(lines[at + 1]):
            rows = [PHASE.findall(row) for row in lines[at + 1 : lines.index("", at)]]
            for column in zip(*rows, strict=True):
                spent = [Decimal(time) for time, _ in column]
                assert sum(Decimal(share) for _, share in column) == 100
                assert [f"{100 * time / sum(spent):.0f}" for time in spent] == [
                    f"{Decimal(share):.0f}" for _, share in column
                ]


def test_costs_are_those_of_the_step_that_is_named(screen: str) -> None:
    named = STEP.search(screen)
    told = " ".join(screen.split())
    for share, spent in COST.findall(told) if named else ():
        assert abs(float(share) / 100 * float(named[1]) - float(spent)) < 0.006 * float(named[1])
    for spent in re.findall(r"costs (?:about )?([\d.]+) ms a step", told) if named else ():
        assert float(spent) < float(named[1])


def test_gains_are_not_more_than_their_costs_allow(screen: str) -> None:
    named = STEP.search(screen)
    for spent, gain in GAIN.findall(" ".join(screen.split())) if named else ():
        step_s = float(named[1])
        assert float(gain) <= 1.05 * step_s / (step_s - float(spent))


def test_a_device_is_busy_or_idle(screen: str) -> None:
    spent = {name: Decimal(time) for name, time in DEVICE.findall(screen)}
    if "span" in spent and "busy" in spent:
        assert spent["busy"] + spent["idle"] == spent["span"]


def test_all_that_was_tried_is_counted(screen: str) -> None:
    if told := re.search(r"(\d+) trials in ", screen):
        tried = len(re.findall(r"\b(?:no difference|slower|failed|replaced by)\b", screen))
        assert int(told[1]) >= tried


def _labels(screen: str) -> set[str]:
    """What begins lines, where a paragraph does not go on."""
    return {"".join(parts) for parts in LABEL.findall(screen)} - {""}


def _parts_of(lines: list[str]) -> list[tuple[Decimal, str, Decimal]]:
    """The rows of a table up to the blank line after it, without those that are a part of another."""
    rows = lines[: lines.index("")] if "" in lines else lines
    found = [match for line in rows if (match := PART.match(line))]
    return [(Decimal(row[1].replace(",", "")), row[2], Decimal(row[3])) for row in found]
