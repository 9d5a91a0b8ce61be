"""Many files: read them, lint them in parallel, fix them where asked."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import libcst as cst
import msgspec

from hotloop.lint.check.config import LintConfig
from hotloop.lint.check.engine import collector_paused, lint_source, speaks_of_torch
from hotloop.lint.check.fix import fix_source, write_atomically
from hotloop.lint.check.registry import chosen_rules
from hotloop.lint.read.judge import Unfit, check_depth, decoded, source_bytes
from hotloop.lint.read.notebook import SUFFIX, Notebook, read_notebook
from hotloop.lint.rule import FixSafety, Rule
from hotloop.model.finding import Finding, Severity

# Starting the pool cost 0.1 s here, which is what one process needs for about 100 kB of source.
_WORTH_A_POOL_BYTES = 200_000
_CHUNK_FILES = 8
Outcome = tuple[list[Finding], int]
"""Findings of a file, and edits that were written to it."""


@dataclass(frozen=True)
class LintResult:
    """What a lint run found and did."""

    findings: list[Finding] = field(default_factory=list)
    num_files: int = 0
    num_fixed: int = 0
    """Edits that were written."""


def lint_files(paths: Sequence[str], config: LintConfig, fix: FixSafety | None = None) -> LintResult:
    """Lint files, in parallel where there is enough to read; with `fix`, first write what is safe enough."""
    work = partial(_lint_file, config=config, fix=fix)
    workers = min(_num_cores(), len(paths))
    if workers < 2 or sum(_size(path) for path in paths) < _WORTH_A_POOL_BYTES:
        outcomes = [work(path) for path in paths]
    else:
        ordered = sorted(paths, key=_size, reverse=True)
        with ProcessPoolExecutor(workers) as pool:
            try:
                outcomes = list(pool.map(work, ordered, chunksize=_CHUNK_FILES))
            except BrokenProcessPool:
                outcomes = [_alone(work, path) for path in ordered]
    findings = sorted(
        (f for found, _ in outcomes for f in found), key=lambda f: (f.path or "", f.line or 0, f.code)
    )
    return LintResult(findings, len(paths), sum(num for _, num in outcomes))


def _alone(work: Callable[[str], Outcome], path: str) -> Outcome:
    """One file in a process of its own: after one of them has ended a whole pool, the others are still linted."""
    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(work, path).result()
        except BrokenProcessPool:
            return [_unreadable(path, Unfit("the parser did not survive it"))], 0


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _lint_file(path: str, config: LintConfig, fix: FixSafety | None) -> Outcome:
    """One file must not end the run, whatever it holds: that is the broad catch's reason."""
    try:
        return _judged(path, config, fix)
    except (Exception, RecursionError, MemoryError) as error:
        return [_unreadable(path, error)], 0


def _judged(path: str, config: LintConfig, fix: FixSafety | None) -> Outcome:
    ignored = config.ignored_in(path)
    rules = chosen_rules(config.select, {*config.ignore, *ignored})
    if path.endswith(SUFFIX):
        return _lint_notebook(path, rules), 0
    text, encoding = decoded(source_bytes(path))
    check_depth(text)
    num_fixed = 0
    if fix is not None and _in_tree(path):
        text, num_fixed = _fix(path, text, encoding, rules, fix)
    return lint_source(path, text, rules), num_fixed


def _lint_notebook(path: str, rules: Sequence[Rule]) -> list[Finding]:
    """Findings in a notebook stand at a line of a cell; it is not edited."""
    notebook = read_notebook(decoded(source_bytes(path))[0])
    check_depth(notebook.source)
    return [_in_cell(finding, path, notebook) for finding in lint_source(path, notebook.source, rules)]


def _in_cell(finding: Finding, path: str, notebook: Notebook) -> Finding:
    if finding.line is None:
        return finding
    cell, line = notebook.place(finding.line)
    return msgspec.structs.replace(finding, path=f"{path}:cell {cell}", line=line)


def _in_tree(path: str) -> bool:
    """Whether a file may be edited: a link may lead to a file that nobody meant."""
    return not os.path.islink(path) or Path(path).resolve().is_relative_to(Path.cwd().resolve())


def _fix(path: str, text: str, encoding: str, rules: Sequence[Rule], allowed: FixSafety) -> tuple[str, int]:
    active = [rule for rule in rules if any(word in text for word in rule.words)]
    if not speaks_of_torch(text) or not active:
        return text, 0
    try:
        with collector_paused():
            fixed = fix_source(path, text, active, allowed)
    except cst.ParserSyntaxError:
        return text, 0
    if fixed.text != text:
        write_atomically(Path(path), fixed.text, encoding)
    return fixed.text, fixed.num_applied


def _unreadable(path: str, error: Exception) -> Finding:
    return Finding(
        code="unreadable-file",
        title="The file cannot be read",
        severity=Severity.WARNING,
        path=path,
        line=1,
        evidence=str(error).splitlines()[0] if str(error) else type(error).__name__,
        advice="Correct its encoding or its permissions, or exclude the file.",
    )
