"""What holds of every screen: width, units, plurals, sums, and none of our internal names."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from .snapshots import FOLDER

SCREENS = sorted(FOLDER.glob("*.txt"))
INTERNAL = re.compile(
    r"foreign_share|monitors\.metrics|\b(deep|phases|program|run|step|efficiency)\.\w+|_ratio\b|\bNone\b|deep window"
)
EXPONENT = re.compile(r"\d[eE][+-]\d\d")
ONE_OF_MANY = re.compile(r"(?<![\d.,])1 (?!samples/s\b|tokens/s\b)[a-z]{3,}[^su\W]s\b(?!/)")
TOTAL = re.compile(r"^(mean step|whole run)\s+([\d.,]+) (\w+)\s+100%$")
PART = re.compile(r"^(?! )[\w,/ -]+?\s+([\d.,]+) (\w+)\s+([\d.]+)%")


@pytest.fixture(params=SCREENS, ids=lambda path: path.stem)
def screen(request: pytest.FixtureRequest) -> str:
    """The text of one screen."""
    path: Path = request.param
    return path.read_text()


def test_there_are_screens() -> None:
    assert SCREENS


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


def _parts_of(lines: list[str]) -> list[tuple[Decimal, str, Decimal]]:
    """The rows of a table up to the blank line after it, without those that are a part of another."""
    rows = lines[: lines.index("")] if "" in lines else lines
    found = [match for line in rows if (match := PART.match(line))]
    return [(Decimal(row[1].replace(",", "")), row[2], Decimal(row[3])) for row in found]
