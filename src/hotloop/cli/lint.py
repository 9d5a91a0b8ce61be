"""`hotloop lint`: static findings."""

from pathlib import Path

import click

from hotloop import __version__
from hotloop.lint.check.config import LintConfig, check_names, find_config
from hotloop.lint.check.run import LintResult, lint_files
from hotloop.lint.manual import pages
from hotloop.lint.read.discover import python_files
from hotloop.lint.rule import FixSafety
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.finding import Severity
from hotloop.report.formats.github import render_github
from hotloop.report.formats.lint_json import render_json
from hotloop.report.formats.sarif import render_sarif
from hotloop.report.terminal.lint import render_text


@click.command()
@click.option("--fix", is_flag=True, help="Write the edits that compute the same numbers.")
@click.option("--unsafe", is_flag=True, help="With --fix: also those that may change numbers or behaviour.")
@click.option("--format", "format_", type=click.Choice(["text", "json", "sarif", "github"]), default="text")
@click.option("--select", default="", help="Codes or families to look for, comma-separated.")
@click.option("--ignore", default="", help="Codes or families to leave out, comma-separated.")
@click.argument("paths", nargs=-1, required=True)
def command(
    *, fix: bool, unsafe: bool, format_: str, select: str, ignore: str, paths: tuple[str, ...]
) -> int:
    """Find what will cost time or memory, from the source alone."""
    if unsafe and not fix:
        raise HotloopError("--unsafe says which edits to write, and --fix is not given.", "Add --fix.")
    config = _merged(find_config(Path.cwd()), _names(select), _names(ignore))
    allowed = (FixSafety.UNSAFE if unsafe else FixSafety.SAFE) if fix else None
    result = lint_files(python_files(paths, config.exclude), config, allowed)
    click.echo(_rendered(result, format_), nl=False)
    if result.num_fixed:
        click.echo(f"{result.num_fixed} edits written.", err=True)
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
    return render_text(result.findings, result.num_files)
