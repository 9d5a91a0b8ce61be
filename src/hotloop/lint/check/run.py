"""Many files: read them, lint them in parallel, fix them where asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import libcst as cst
import msgspec

from hotloop.lint.check.config import LintConfig
from hotloop.lint.check.engine import Found, collector_paused, found_in, lint_source, rules_for
from hotloop.lint.check.fix import Fixed, fix_source
from hotloop.lint.check.registry import chosen_rules
from hotloop.lint.read.judge import (
    MAX_BYTES,
    MAX_NOTEBOOK_BYTES,
    Unfit,
    check_depth,
    decoded,
    source_bytes,
)
from hotloop.lint.read.notebook import SUFFIX, Notebook, read_notebook
from hotloop.lint.rule import Rule
from hotloop.model.finding import Finding, Severity
from hotloop.model.safety import Safety
from hotloop.source.diff import unified
from hotloop.source.files import write_atomically

# Starting the pool cost 0.1 s here, which is what one process needs for about 100 kB of source.
_WORTH_A_POOL_BYTES = 200_000
_CHUNK_FILES = 8


@dataclass(frozen=True)
class Fixable:
    """How many findings have an edit that would end them: one that `--fix` makes, or `--fix --unsafe` alone."""

    num_safe: int = 0
    num_unsafe: int = 0

    def __add__(self, other: Fixable) -> Fixable:
        """Return both together."""
        return Fixable(self.num_safe + other.num_safe, self.num_unsafe + other.num_unsafe)


@dataclass(frozen=True)
class Outcome:
    """What became of one file: its findings, the edits made, and how they look as a patch."""

    findings: list[Finding]
    num_fixed: int = 0
    diff: bytes = b""
    fixable: Fixable = Fixable()


@dataclass(frozen=True)
class LintResult:
    """What a lint run found and did."""

    findings: list[Finding] = field(default_factory=list)
    num_files: int = 0
    num_fixed: int = 0
    """Edits that were made."""
    edited: tuple[str, ...] = ()
    """The files that they were made in."""
    diff: bytes = b""
    """The edits as a patch."""
    fixable: Fixable = Fixable()
    """Of the findings, those that are left."""


def lint_files(
    paths: Sequence[str], config: LintConfig, fix: Safety | None = None, *, write: bool = True
) -> LintResult:
    """Lint files, in parallel where there is enough to read; with `fix`, first edit what is safe enough.

    Args:
        paths: of the files.
        config: which rules.
        fix: how far an edit may go; None: nothing is edited.
        write: whether edits go to the files; if not, the findings are those of the files as they are.
    """
    work = partial(_lint_file, config=config, fix=fix, write=write)
    workers = min(_num_cores(), len(paths))
    read = sorted(paths, key=_size, reverse=True)
    if workers < 2 or sum(_size(path) for path in paths) < _WORTH_A_POOL_BYTES:
        outcomes = [work(path) for path in read]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
            try:
                outcomes = list(pool.map(work, read, chunksize=_CHUNK_FILES))
            except BrokenProcessPool:
                outcomes = [_alone(work, path) for path in read]
    findings = sorted(
        (finding for one in outcomes for finding in one.findings),
        key=lambda finding: (finding.path or "", finding.line or 0, finding.code),
    )
    diff = b"".join(one.diff for one in sorted(outcomes, key=lambda one: one.diff))
    fixable = sum((one.fixable for one in outcomes), Fixable())
    edited = tuple(sorted(path for path, one in zip(read, outcomes, strict=True) if one.num_fixed))
    return LintResult(findings, len(paths), sum(one.num_fixed for one in outcomes), edited, diff, fixable)


def _alone(work: Callable[[str], Outcome], path: str) -> Outcome:
    """One file in a process of its own: after one of them has ended a whole pool, the others are still linted."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        try:
            return pool.submit(work, path).result()
        except BrokenProcessPool:
            return Outcome([_unreadable(path, Unfit("the parser did not survive it"))])


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _lint_file(path: str, config: LintConfig, fix: Safety | None, *, write: bool) -> Outcome:
    """One file must not end the run, whatever it holds: that is the broad catch's reason."""
    try:
        return _judged(path, config, fix, write=write)
    except (Exception, RecursionError, MemoryError) as error:
        return Outcome([_unreadable(path, error)])


def _judged(path: str, config: LintConfig, fix: Safety | None, *, write: bool) -> Outcome:
    ignored = config.ignored_in(path)
    rules = chosen_rules(config.select, {*config.ignore, *ignored})
    if path.endswith(SUFFIX):
        return Outcome(_lint_notebook(path, rules))
    text, encoding = decoded(source_bytes(path))
    check_depth(text)
    if not _in_tree(path):
        return Outcome(lint_source(path, text, rules))
    if fix is None:
        return outcome_of(found_in(path, text, rules))
    fixed = fixed_text(path, text, rules, fix)
    if write and fixed.text != text:
        write_atomically(Path(path), fixed.text.encode(encoding))
    diff = unified(path, text.encode(encoding), fixed.text.encode(encoding))
    return outcome_of(found_in(path, fixed.text if write else text, rules), fixed.num_applied, diff)


def outcome_of(found: Sequence[Found], num_fixed: int = 0, diff: bytes = b"") -> Outcome:
    """Return what became of a file that may be edited."""
    safeties = [each.safety for each in found if each.edits]
    fixable = Fixable(safeties.count(Safety.SAFE), safeties.count(Safety.UNSAFE))
    return Outcome([each.finding for each in found], num_fixed, diff, fixable)


def _lint_notebook(path: str, rules: Sequence[Rule]) -> list[Finding]:
    """Findings in a notebook stand at a line of a cell; it is not edited."""
    notebook = read_notebook(decoded(source_bytes(path, MAX_NOTEBOOK_BYTES))[0])
    if len(notebook.source) > MAX_BYTES:
        raise Unfit(f"its code is larger than {MAX_BYTES >> 20} MiB")
    check_depth(notebook.source)
    return [_in_cell(finding, path, notebook) for finding in lint_source(path, notebook.source, rules)]


def _in_cell(finding: Finding, path: str, notebook: Notebook) -> Finding:
    if finding.line is None:
        return finding
    cell, line = notebook.place(finding.line)
    return msgspec.structs.replace(finding, path=f"{path}:cell {cell}", line=line)


def _in_tree(path: str) -> bool:
    """Whether a file may be edited: a link may lead to a file that nobody meant."""
    place = Path(path).resolve()
    if place.is_relative_to(Path.cwd().resolve()):
        return True
    return place == Path(os.path.abspath(path))  # no link on the way


def fixed_text(path: str, text: str, rules: Sequence[Rule], allowed: Safety) -> Fixed:
    """Return a source text with its fixes; as it is where none applies, or it is not Python."""
    if not rules_for(text, rules):
        return Fixed(text, 0)
    try:
        with collector_paused():
            return fix_source(path, text, rules, allowed)
    except cst.ParserSyntaxError:
        return Fixed(text, 0)


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
