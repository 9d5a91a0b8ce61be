"""The fault library is what it says: one known fault in each program, or none."""

from __future__ import annotations

import ast

import pytest

from hotloop.diagnose.registry import all_rules
from tests.faults.library import BASES, CASES, Case


def test_cases_have_names_of_their_own_and_several_bases() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({case.base.name for case in CASES}) >= 6


def test_each_base_is_there_without_a_fault() -> None:
    assert {case.base.name for case in CASES if case.fault is None} == set(BASES)


def test_expected_codes_are_those_of_rules() -> None:
    codes = {rule.code for rule in all_rules()}
    assert {code for case in CASES if case.fault for code in case.fault.expected} <= codes


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_source_differs_by_its_fault(case: Case) -> None:
    tree = ast.parse(case.source())
    same = ast.dump(tree) == ast.dump(ast.parse(case.base.source))
    assert same == (case.fault is None)
    compile(tree, case.name, "exec")
