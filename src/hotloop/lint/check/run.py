"""Many files: read them, lint them in parallel, fix them where asked."""

import os
import tokenize
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import libcst as cst
import msgspec

from hotloop.lint.check.config import LintConfig
from hotloop.lint.check.engine import collector_paused, lint_source, speaks_of_torch
from hotloop.lint.check.fix import fix_source, write_atomically
from hotloop.lint.check.registry import chosen_rules
from hotloop.lint.read.notebook import SUFFIX, Notebook, read_notebook
from hotloop.lint.rule import FixSafety, Rule
from hotloop.model.finding import Finding, Severity

# Starting the pool cost 0.1 s here, which is what one process needs for about 100 kB of source.
_WORTH_A_POOL_BYTES = 200_000
_CHUNK_FILES = 8


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
            outcomes = list(pool.map(work, ordered, chunksize=_CHUNK_FILES))
    findings = sorted(
        (f for found, _ in outcomes for f in found), key=lambda f: (f.path or "", f.line or 0, f.code)
    )
    return LintResult(findings, len(paths), sum(num for _, num in outcomes))


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _lint_file(path: str, config: LintConfig, fix: FixSafety | None) -> tuple[list[Finding], int]:
    ignored = config.ignored_in(path)
    rules = chosen_rules(config.select, {*config.ignore, *ignored})
    if path.endswith(SUFFIX):
        return _lint_notebook(path, rules), 0
    try:
        text, encoding = _read(path)
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        return [_unreadable(path, error)], 0
    num_fixed = 0
    if fix is not None:
        text, num_fixed = _fix(path, text, encoding, rules, fix)
    return lint_source(path, text, rules), num_fixed


def _lint_notebook(path: str, rules: Sequence[Rule]) -> list[Finding]:
    """Findings in a notebook stand at a line of a cell; it is not edited."""
    try:
        notebook = read_notebook(_read(path)[0])
    except (OSError, SyntaxError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        return [_unreadable(path, error)]
    return [_in_cell(finding, path, notebook) for finding in lint_source(path, notebook.source, rules)]


def _in_cell(finding: Finding, path: str, notebook: Notebook) -> Finding:
    if finding.line is None:
        return finding
    cell, line = notebook.place(finding.line)
    return msgspec.structs.replace(finding, path=f"{path}:cell {cell}", line=line)


def _read(path: str) -> tuple[str, str]:
    """The text with its line ends as they are, and its encoding."""
    with open(path, "rb") as stream:
        encoding, _ = tokenize.detect_encoding(stream.readline)
        stream.seek(0)
        return stream.read().decode(encoding), encoding


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
