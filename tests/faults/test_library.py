"""The fault library is what it says: one known fault in each program, or none."""

from __future__ import annotations

import ast

import pytest

from hotloop.diagnose.check.registry import all_rules
from hotloop.lint.check.registry import all_rules as static_rules
from tests.faults.held_out import HELD_OUT
from tests.faults.library import BASES, CASES, Case
from tests.faults.written import SYNCHRONIZING, WRITTEN

_ALL = (*CASES, *HELD_OUT)
_FAULTS = [case for case in _ALL if case.fault is not None]


def test_cases_have_names_of_their_own() -> None:
    assert len({case.name for case in _ALL}) == len(_ALL)


def test_there_are_sixty_faults_in_programs_made_from_twelve_base_loops() -> None:
    injected = [case for case in CASES if case.fault is not None]
    assert len(injected) >= 60
    assert len({case.base.name for case in injected}) >= 12


def test_no_program_held_out_is_made_from_a_base_of_the_library() -> None:
    assert not {case.base.name for case in HELD_OUT} & set(BASES)


def test_expected_codes_are_those_of_rules() -> None:
    codes = {rule.code for rule in (*all_rules(), *static_rules())}
    assert {code for case in _FAULTS if case.fault for code in case.fault.expected} <= codes


def test_each_base_is_there_without_a_fault() -> None:
    assert {case.base.name for case in CASES if case.fault is None} == set(BASES)


@pytest.mark.parametrize("case", _ALL, ids=lambda case: case.name)
def test_source_differs_by_its_fault(case: Case) -> None:
    tree = ast.parse(case.source())
    same = ast.dump(tree) == ast.dump(ast.parse(case.base.source))
    assert same == (case.fault is None)
    compile(tree, case.name, "exec")


@pytest.mark.parametrize("case", _FAULTS, ids=lambda case: case.name)
def test_a_finding_may_name_some_lines_and_not_most(case: Case) -> None:
    num_lines = len(case.source().splitlines())
    assert 0 < len(case.lines()) < num_lines / 3


def test_written_programs_name_places_that_exist() -> None:
    assert len(WRITTEN) + len(SYNCHRONIZING) == 73
    for case in WRITTEN:
        files = {"train.py": case.source(), **case.others()}
        for text in files.values():
            compile(text, case.name, "exec")
        assert bool(case.places()) == (case.fault is not None)
        for name, line in case.places():
            assert files[name].splitlines()[line - 1].strip(), (case.name, name, line)


def test_what_is_expected_of_written_programs_are_codes_of_rules() -> None:
    known = {rule.code for rule in all_rules()} | {rule.code for rule in static_rules()}
    assert {code for case in WRITTEN if case.fault for code in case.fault.expected} <= known
