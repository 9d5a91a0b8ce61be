"""`hotloop report`: a session as a page to look at, send and believe."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import click
from rich.text import Text

from hotloop.cli.compare import show_comparison
from hotloop.cli.files import STDOUT, write_json, write_text
from hotloop.cli.options import NewScreen, Number, ResultFile, output_options
from hotloop.cli.report_exports import export, export_options
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.quantities import counted
from hotloop.report.content.content import ReportContent
from hotloop.report.html.page import page
from hotloop.report.markdown import markdown
from hotloop.report.sanitize import cleaned
from hotloop.report.sections.all import document
from hotloop.report.sections.brief import brief as brief_document
from hotloop.report.terminal.report import render, render_next
from hotloop.report.terminal.screen import Screen
from hotloop.review.compared import compare_sessions
from hotloop.review.report_content import Prices, report_content
from hotloop.review.stored import session_with_result
from hotloop.store.nearest import folder_of, folder_of_sessions
from hotloop.store.session import find_session, sessions

_PRICE = Number(min=0)
_OUT = ResultFile()


@click.command("report", epilog="Example: hotloop report --html report.html")
@click.option("--html", type=_OUT, help="Write one self-contained page.")
@click.option("--markdown", "markdown_file", type=_OUT, help="Write it as Markdown.")
@click.option("--brief", is_flag=True, help="With --markdown: 25 lines, for a pull request.")
@click.option("--json", "json_file", type=_OUT, help="Write every figure.")
@click.option("--price-per-hour", type=_PRICE, metavar="PRICE", help="Price of this machine per hour.")
@click.option("--power-price", type=_PRICE, metavar="PRICE", help="Price of a kilowatt-hour.")
@click.option("--verbose", is_flag=True, help="Show everything that the page holds on the terminal.")
@export_options
@output_options
@click.argument("names", nargs=-1, metavar="[SESSION...]")
def command(
    *,
    names: tuple[str, ...],
    html: Path | None,
    markdown_file: Path | None,
    brief: bool,
    json_file: Path | None,
    price_per_hour: float | None,
    power_price: float | None,
    verbose: bool,
    new_screen: NewScreen,
    **exports: Path | None,
) -> int:
    """Show a session: the newest, the one named, or one by its file; or compare two.

    As a page with charts (--html), as Markdown (--markdown; --brief for a pull request), as figures (--json), or
    in short on the terminal.
    """
    screen = new_screen()
    if brief and markdown_file is None:
        raise click.UsageError(
            "--brief shortens what --markdown FILE writes: add --markdown - for standard output"
        )
    if len(names) > 2:
        raise click.UsageError("one session is shown, or two are compared")
    if len(names) == 2:
        show_comparison(
            screen, compare_sessions(*names), html=html, markdown_file=markdown_file, json_file=json_file
        )
        return ExitCode.DONE
    base = folder_of_sessions(Path.cwd())
    with contextlib.closing(session_with_result(base, names[0] if names else None)) as session:
        _say_passed_over(screen, base, session.name, named=bool(names))
        content = report_content(session, Prices(price_per_hour, power_price), folder_of(session))
    write_report(content, html=html, markdown_file=markdown_file, json_file=json_file, brief=brief)
    written = [file for file in (html, markdown_file, json_file) if file is not None]
    for file in (*export(content, exports), *written):
        if file != STDOUT:
            screen.note(f"hotloop: wrote {file}")
    if written:
        screen.show(Text(cleaned(content.headline.sentence)))
    else:
        screen.show(render(document(content), verbose=verbose))
        screen.show(render_next(content.session))
    return ExitCode.DONE


def _say_passed_over(screen: Screen, base: Path, name: str, *, named: bool) -> None:
    newer = [path.stem for path in sessions(base)]
    num = newer.index(name) if name in newer and not named else 0
    if num:
        said = counted(num, "newer session")
        screen.note(f"hotloop: {said} skipped: nothing was measured there (hotloop sessions)")


def write_report(
    content: ReportContent,
    *,
    html: Path | None,
    markdown_file: Path | None = None,
    json_file: Path | None = None,
    brief: bool = False,
) -> None:
    """Write what is asked for, all from the same content.

    Raises:
        HotloopError: a file cannot be written.
    """
    shown = document(content)
    if html is not None:
        write_text(html, page(shown, content.manual))
    if markdown_file is not None:
        short = brief_document(content) if brief else shown
        write_text(markdown_file, markdown(short, brief=brief))
    if json_file is not None:
        write_json(json_file, content.without_series())


def keep_page(screen: Screen, name: str) -> None:
    """Write a session's page beside it and say where.

    What was measured is stored by then: a page that cannot be written is said, and is no failure.
    """
    try:
        with contextlib.closing(find_session(Path.cwd(), name)) as session:
            file = session.path.with_suffix(".html")
            content = report_content(session)
        # It shows what the session holds: paths, the command, the end of the program's output.
        write_text(file, page(document(content), content.manual), private=True)
    except HotloopError as error:
        screen.note(f"hotloop: no page was written: {error.message}")
        screen.note(f"  {error.hint}")
        screen.note(f"  to write the page: hotloop report {name} --html FILE")
        return
    screen.note(f"hotloop: full report: {os.path.relpath(file)} (hotloop report shows it again)")
