"""Every rule does what its spec says."""

import pytest

from hotloop.lint.check.engine import lint_source
from hotloop.lint.check.fix import fix_source
from hotloop.lint.check.registry import all_rules
from hotloop.lint.rule import Rule
from hotloop.model.finding import Severity
from hotloop.model.safety import Safety

from .spec_files import Case, Fix, Spec, all_specs

RULES = {rule.code: rule for rule in all_rules()}
SPECS = all_specs()


def _cases(kind: str) -> list[object]:
    return [
        pytest.param(spec, case, id=f"{spec.code}-{place}")
        for spec in SPECS
        for place, case in enumerate(getattr(spec, kind))
    ]


@pytest.mark.parametrize(("spec", "case"), _cases("found"))
def test_bad_source_is_found_at_its_lines(spec: Spec, case: Case) -> None:
    assert case.marked_lines, "a spec must mark the lines it wants found"
    assert _lines(RULES[spec.code], case.source) == case.marked_lines


@pytest.mark.parametrize(("spec", "case"), _cases("fine"))
def test_good_source_is_left_alone(spec: Spec, case: Case) -> None:
    assert _lines(RULES[spec.code], case.source) == []


def _lines(rule: Rule, source: str) -> list[int | None]:
    return sorted(
        {finding.line for finding in lint_source("train.py", source, [rule])}, key=lambda line: line or 0
    )


@pytest.mark.parametrize(("spec", "fix"), _cases("fixes"))
def test_a_fix_gives_the_source_after(spec: Spec, fix: Fix) -> None:
    rule = RULES[spec.code]
    allowed = Safety[fix.safety.upper()]
    fixed = fix_source("train.py", fix.before, [rule], allowed)
    assert fixed.text == fix.after
    assert fixed.num_applied > 0


@pytest.mark.parametrize(("spec", "fix"), _cases("fixes"))
def test_a_fix_changes_nothing_the_second_time(spec: Spec, fix: Fix) -> None:
    again = fix_source("train.py", fix.after, [RULES[spec.code]], Safety[fix.safety.upper()])
    assert again.text == fix.after
    assert again.num_applied == 0


@pytest.mark.parametrize(
    ("spec", "fix"),
    [param for param in _cases("fixes") if param.values[1].safety == "unsafe"],  # type: ignore[attr-defined]
)
def test_an_unsafe_fix_is_not_applied_as_a_safe_one(spec: Spec, fix: Fix) -> None:
    assert fix_source("train.py", fix.before, [RULES[spec.code]], Safety.SAFE).text == fix.before


@pytest.mark.parametrize(
    ("told", "severity"),
    [
        ("", Severity.WARNING),
        ('accelerator="cpu"', Severity.INFO),
        ('accelerator="cpu", default_root_dir="cuda"', Severity.WARNING),
    ],
)
def test_a_wait_for_the_device_is_loud_where_there_may_be_one(told: str, severity: Severity) -> None:
    source = f"""
import torch
import lightning.pytorch as pl
class Model(pl.LightningModule):
    def training_step(self, batch, index):
        loss = self.net(batch).sum()
        self.total += loss.item()
        return loss
pl.Trainer({told}).fit(Model())
"""
    (found,) = lint_source("train.py", source, [RULES["sync-in-step"]])
    assert found.severity is severity
