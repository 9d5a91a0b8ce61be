"""What the house asks of every static rule."""

import ast
import re
from pathlib import Path

import pytest

from hotloop.lint import rules as rules_package
from hotloop.lint.check.engine import SYNTAX_ERROR
from hotloop.lint.check.registry import FAMILIES, all_rules, chosen_rules
from hotloop.lint.manual.pages import BOOK, page
from hotloop.lint.rule import Rule
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety

from .spec_files import ROOT, all_specs

SECTIONS = ["What it does", "Why it is slow", "When it is fine", "Example", "References"]
CATALOGUE_NAME = re.compile(r"[a-z][a-z0-9_]+")
ALLOWED = ("hotloop.discovery", "hotloop.lint", "hotloop.model", "hotloop.patterns", "hotloop.source")
REPOSITORY = Path(__file__).parents[2]

each_rule = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)


def test_codes_are_unique_and_no_family_has_a_codes_name() -> None:
    codes = [rule.code for rule in all_rules()]
    assert len(codes) == len(set(codes))
    assert not set(codes) & {*FAMILIES, SYNTAX_ERROR}


def test_every_rule_file_is_registered() -> None:
    folder = Path(rules_package.__path__[0])
    files = {path.stem for path in folder.rglob("*.py") if path.stem != "__init__"}
    assert files == {rule.code.replace("-", "_") for rule in all_rules()}


@each_rule
def test_page_has_all_sections_in_order(rule: Rule) -> None:
    assert re.findall(r"^## (.+)$", rule.page, re.MULTILINE) == SECTIONS


@each_rule
def test_page_says_more_than_its_title(rule: Rule) -> None:
    for section in re.split(r"^## .+$", rule.page, flags=re.MULTILINE)[1:]:
        assert len(section.split()) >= 3


@each_rule
def test_example_shows_bad_and_good_source(rule: Rule) -> None:
    example = rule.page.partition("## Example")[2].partition("## References")[0]
    assert example.count("```python") == 2
    assert "Use instead:" in example


@each_rule
def test_references_are_addresses(rule: Rule) -> None:
    assert "https://" in rule.page.partition("## References")[2]


@each_rule
def test_names_are_well_formed(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.code)
    assert rule.optimization is None or CATALOGUE_NAME.fullmatch(rule.optimization)
    assert isinstance(rule.severity, Severity)
    assert rule.title
    assert rule.advice.endswith(".")
    assert rule.words


@each_rule
def test_rule_has_a_spec_in_its_family(rule: Rule) -> None:
    spec = next(spec for spec in all_specs() if spec.code == rule.code)
    assert spec.family == rule.family
    assert spec.found
    assert spec.fine


@each_rule
def test_a_declared_fix_is_shown_in_the_spec(rule: Rule) -> None:
    spec = next(spec for spec in all_specs() if spec.code == rule.code)
    assert bool(spec.fixes) == (rule.fix is not None)
    if rule.fix is not None:
        assert rule.fix in {Safety[fix.safety.upper()] for fix in spec.fixes}


@each_rule
def test_an_unsafe_fix_says_why_on_its_page(rule: Rule) -> None:
    if rule.fix is Safety.UNSAFE:
        assert len(rule.page.partition("## When it is fine")[2].partition("## Example")[0].split()) >= 6


def test_no_spec_is_without_a_rule() -> None:
    assert {path.stem for path in ROOT.rglob("*.md")} == {rule.code for rule in all_rules()}


def test_choice_is_by_code_and_by_family() -> None:
    assert [rule.code for rule in chosen_rules(["tf32-off"], [])] == ["tf32-off"]
    assert {rule.family for rule in chosen_rules(["data", "run"], [])} == {"data", "run"}
    assert not {"data"} & {rule.family for rule in chosen_rules([], ["data"])}
    assert chosen_rules([], []) == all_rules()


def test_rules_import_nothing_but_the_model_and_libcst() -> None:
    folder = Path(rules_package.__path__[0]).parent
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not name.startswith("torch"), path
                if name.startswith("hotloop"):
                    assert name.startswith(ALLOWED), path


@each_rule
def test_explain_shows_the_declarations(rule: Rule) -> None:
    text = page(rule.code) or ""
    assert text.startswith(f"# {rule.code}\n")
    assert f"severity: {rule.severity.value}" in text


def test_the_page_of_all_rules_is_up_to_date() -> None:
    written = (REPOSITORY / "docs" / "lint.md").read_text(encoding="utf-8")
    assert written == BOOK.manual(), "run: python -m hotloop.lint.manual docs/lint.md"
