"""One file: parse it once, show each node to the rules that asked for its type, collect the findings."""

import ast
import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import libcst as cst

from hotloop.lint.infer.program import Program
from hotloop.lint.read.suppress import Suppressions
from hotloop.lint.rule import Edit, Hit, Rule
from hotloop.model.finding import Finding, Severity
from hotloop.model.safety import Safety
from hotloop.source.source_file import SourceFile

SYNTAX_ERROR = "syntax-error"
_LIBRARIES = ("torch", "lightning", "transformers")
_PLACE = re.compile(r"^parser error: error at \d+:\d+: ")
"""Of where the parser gave up, which is behind the mistake; the finding has the line."""


@dataclass(frozen=True)
class Found:
    """A finding, and the edits that would end it."""

    finding: Finding
    edits: tuple[Edit, ...] = ()
    safety: Safety | None = None


def lint_source(path: str, text: str, rules: Sequence[Rule]) -> list[Finding]:
    """The findings of one source text, in line order; a text that is not Python is one finding."""
    return [found.finding for found in found_in(path, text, rules)]


def found_in(path: str, text: str, rules: Sequence[Rule]) -> list[Found]:
    """The findings of one source text with the edits that would end them."""
    active = rules_for(text, rules)
    if not active:
        return _syntax_only(path, text)
    with collector_paused():
        try:
            file = SourceFile(path, text)
        except cst.ParserSyntaxError as error:
            return [Found(syntax_error(path, error))]
        return _once_a_line(examine(file, active))


def rules_for(text: str, rules: Sequence[Rule]) -> list[Rule]:
    """The rules that can say anything about the text: none for most files of a large tree."""
    if not any(library in text for library in _LIBRARIES):
        return []
    return [rule for rule in rules if any(word in text for word in rule.words)]


def examine(file: SourceFile, rules: Sequence[Rule]) -> list[Found]:
    """What the rules find in a parsed file, without what its comments suppress, in line order."""
    program = Program(file)
    suppressed = Suppressions(file.text)
    found = [
        _found(file, rule, hit)
        for rule, hit in _hits(program, rules)
        if not suppressed.covers(rule.code, file.line(hit.node), file.line(file.statement(hit.node)))
    ]
    return sorted(found, key=lambda one: (one.finding.line or 0, one.finding.code))


def _once_a_line(found: list[Found]) -> list[Found]:
    return list({(one.finding.line, one.finding.code, one.finding.evidence): one for one in found}.values())


def _hits(program: Program, rules: Sequence[Rule]) -> Iterator[tuple[Rule, Hit]]:
    by_type: dict[type[cst.CSTNode], list[tuple[Rule, object]]] = {}
    for rule in rules:
        for visit in rule.visits:
            by_type.setdefault(visit.node_type, []).append((rule, visit.check))
    for node_type, checks in by_type.items():
        for node in program.file.all(node_type):
            for rule, check in checks:
                for hit in check(program, node):  # type: ignore[operator]
                    yield rule, hit


def _found(file: SourceFile, rule: Rule, hit: Hit) -> Found:
    finding = Finding(
        code=rule.code,
        title=rule.title,
        severity=hit.severity or rule.severity,
        path=file.path,
        line=file.line(hit.node),
        evidence=hit.evidence,
        advice=hit.advice or rule.advice,
        optimization=rule.optimization,
    )
    return Found(finding, hit.edits, hit.safety if hit.safety is not None else rule.fix)


def _syntax_only(path: str, text: str) -> list[Found]:
    """Look only whether the text is Python: ten times faster than LibCST, which has the last word."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        try:
            cst.parse_module(text)
        except cst.ParserSyntaxError as error:
            return [Found(syntax_error(path, error))]
    return []


def syntax_error(path: str, error: cst.ParserSyntaxError) -> Finding:
    """The finding for a file that cannot be read as Python."""
    return Finding(
        code=SYNTAX_ERROR,
        title="The file is not valid Python",
        severity=Severity.WARNING,
        path=path,
        line=max(error.raw_line, 1),
        evidence=_PLACE.sub("", error.message.splitlines()[0])
        if error.message
        else "the parser stopped here",
        advice="Correct the syntax, or exclude the file; no rule could read it.",
    )


@contextmanager
def collector_paused() -> Iterator[None]:
    """Parsing makes millions of small objects without cycles; with the collector it takes twice the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
