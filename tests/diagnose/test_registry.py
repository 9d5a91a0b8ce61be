"""What the house asks of every dynamic rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hotloop.diagnose import rules as rules_package
from hotloop.diagnose.check.registry import FAMILIES, all_rules
from hotloop.diagnose.manual.pages import BOOK, page
from hotloop.diagnose.rule import Rule

SECTIONS = ["What it does", "Why it is slow", "When it is fine", "Example", "References"]
REPOSITORY = Path(__file__).parents[2]
SHARED = {"boundaries", "handing_over", "making_samples"}
"""What several rules of the data family measure with."""

each_rule = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)


def test_codes_are_unique_and_explained_codes_exist() -> None:
    codes = [rule.code for rule in all_rules()]
    assert len(codes) == len(set(codes))
    assert not set(codes) & set(FAMILIES)
    assert {code for rule in all_rules() for code in rule.explains} <= set(codes)


def test_every_rule_file_is_registered() -> None:
    files = {path.stem for path in Path(rules_package.__path__[0]).rglob("*.py") if path.stem != "__init__"}
    assert files - SHARED == {rule.code.replace("-", "_") for rule in all_rules()}


@each_rule
def test_page_has_all_sections_in_order(rule: Rule) -> None:
    assert re.findall(r"^## (.+)$", rule.page, re.MULTILINE) == SECTIONS
    example = rule.page.partition("## Example")[2].partition("## References")[0]
    assert example.count("```python") == 2
    assert "Use instead:" in example
    assert "https://" in rule.page.partition("## References")[2]


@each_rule
def test_names_are_well_formed(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.code)
    assert rule.optimization is None or re.fullmatch(r"[a-z][a-z0-9_]+", rule.optimization)
    assert rule.title
    assert rule.advice.endswith(".")


@each_rule
def test_the_page_lists_it_under_its_family(rule: Rule) -> None:
    listed = (REPOSITORY / "docs" / "diagnose.md").read_text(encoding="utf-8")
    assert f"| [{rule.code}](#{rule.code}) | {rule.family} |" in listed


@each_rule
def test_explain_shows_the_declarations(rule: Rule) -> None:
    text = page(rule.code) or ""
    assert text.startswith(f"# {rule.code}\n")
    fix = f"tried by: `hotloop tune --only {rule.optimization}`" if rule.optimization else "fix: by hand"
    assert fix in text


def test_the_page_of_all_rules_is_up_to_date() -> None:
    written = (REPOSITORY / "docs" / "diagnose.md").read_text(encoding="utf-8")
    assert written == BOOK.manual(), "run: python -m hotloop.diagnose.manual docs/diagnose.md"
