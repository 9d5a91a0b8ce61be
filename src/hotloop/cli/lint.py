"""`hotloop lint`: static findings."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hotloop import __version__
from hotloop.lint.check.config import LintConfig, check_names, find_config
from hotloop.lint.check.engine import found_in
from hotloop.lint.check.registry import chosen_rules
from hotloop.lint.check.run import LintResult, fixed_text, lint_files, outcome_of
from hotloop.lint.manual import pages
from hotloop.lint.read.discover import python_files
from hotloop.lint.read.judge import Unfit, check_depth, decoded
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.finding import Severity
from hotloop.model.foreign_text import shown
from hotloop.model.quantities import counted
from hotloop.model.safety import Safety
from hotloop.report.formats.github import render_github
from hotloop.report.formats.lint_json import render_json
from hotloop.report.formats.sarif import render_sarif
from hotloop.report.terminal.lint import render_text
from hotloop.source.diff import unified

NAMED = 3
"""Files by their names; of more the number."""


@click.command(epilog="Example: hotloop lint --diff train.py")
@click.option("--fix", is_flag=True, help="Write the edits that compute the same numbers.")
@click.option("--diff", is_flag=True, help="Print the fixes as a patch; write nothing.")
@click.option(
    "--unsafe", is_flag=True, help="With --fix or --diff: include fixes that may change numbers or behaviour."
)
@click.option("--format", "format_", type=click.Choice(["text", "json", "sarif", "github"]), default="text")
@click.option("--select", default="", help="Codes or families to look for, comma-separated.")
@click.option("--ignore", default="", help="Codes or families to leave out, comma-separated.")
@click.argument("paths", nargs=-1, required=True)
def command(
    *, fix: bool, diff: bool, unsafe: bool, format_: str, select: str, ignore: str, paths: tuple[str, ...]
) -> int:
    """Find what will cost time or memory, from the source alone.

    A path of `-` is standard input: with --fix the corrected source goes to standard output, and the findings to
    standard error.
    """
    if unsafe and not (fix or diff):
        raise HotloopError(
            "--unsafe says which edits to make, and --fix is not given.", "Add --fix or --diff."
        )
    config = _merged(find_config(Path.cwd()), _names(select), _names(ignore))
    allowed = (Safety.UNSAFE if unsafe else Safety.SAFE) if fix or diff else None
    if paths == ("-",):
        return _standard_input(config, allowed, format_, diff=diff)
    result = lint_files(python_files(paths, config.exclude), config, allowed, write=not diff)
    click.echo(result.diff if diff else _rendered(result, format_), nl=False)
    if diff and not result.num_fixed:
        click.echo(_why_no_edit(result, unsafe=unsafe), err=True)
    if result.num_fixed:
        verb = "to write" if diff else "written"
        click.echo(f"{counted(result.num_fixed, 'edit')} {verb}: {_named(result.edited)}.", err=True)
    return _exit_code(result)


def _named(files: Sequence[str]) -> str:
    more = f" and {counted(len(files) - NAMED, 'more file')}" if len(files) > NAMED else ""
    return f"{', '.join(shown(file) for file in files[:NAMED])}{more}"


def _why_no_edit(result: LintResult, *, unsafe: bool) -> str:
    if not result.findings:
        return "Nothing to write: there are no findings."
    num = result.fixable.num_unsafe
    if unsafe or not num:
        return f"Nothing to write: none of {counted(len(result.findings), 'finding')} has an edit."
    return f"Nothing to write that computes the same numbers; --unsafe has {counted(num, 'edit')} more."


def _standard_input(config: LintConfig, allowed: Safety | None, format_: str, *, diff: bool) -> int:
    raw = sys.stdin.buffer.read()
    try:
        text, encoding = decoded(raw)
        check_depth(text)
    except (Unfit, SyntaxError, UnicodeDecodeError) as error:
        raise HotloopError(
            f"standard input cannot be read as Python: {error}", "Give it a source file."
        ) from error
    rules = chosen_rules(config.select, set(config.ignore))
    if allowed is None:
        seen = outcome_of(found_in("<stdin>", text, rules))
        result = LintResult(seen.findings, 1, fixable=seen.fixable)
        click.echo(_rendered(result, format_), nl=False)
        return _exit_code(result)
    fixed = fixed_text("<stdin>", text, rules, allowed)
    after = fixed.text.encode(encoding)
    click.echo(unified("stdin", raw, after) if diff else after, nl=False)
    left = outcome_of(found_in("<stdin>", fixed.text, rules))
    result = LintResult(left.findings, 1, fixed.num_applied, fixable=left.fixable)
    click.echo(_rendered(result, format_), nl=False, err=True)
    return _exit_code(result)


def _exit_code(result: LintResult) -> int:
    loud = any(finding.severity is not Severity.INFO for finding in result.findings)
    return ExitCode.GATE if loud else ExitCode.DONE


def _names(text: str) -> tuple[str, ...]:
    return check_names([name.strip() for name in text.split(",") if name.strip()])


def _merged(config: LintConfig, select: tuple[str, ...], ignore: tuple[str, ...]) -> LintConfig:
    """The command line's selection takes the place of the file's; what it ignores comes on top."""
    return LintConfig(
        select=select or config.select,
        ignore=(*config.ignore, *ignore),
        exclude=config.exclude,
        per_file_ignores=config.per_file_ignores,
    )


def _rendered(result: LintResult, format_: str) -> str:
    if format_ == "json":
        return render_json(result.findings, result.num_files)
    if format_ == "github":
        return render_github(result.findings)
    if format_ == "sarif":
        found = {finding.code: pages.page(finding.code) for finding in result.findings}
        return render_sarif(
            result.findings, __version__, {code: page for code, page in found.items() if page}
        )
    fixable = result.fixable
    return render_text(result.findings, result.num_files, fixable.num_safe, fixable.num_unsafe)
