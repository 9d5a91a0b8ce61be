"""`hotloop machine`: what this machine can do, and what would spoil a measurement on it."""

from __future__ import annotations

from pathlib import Path

import click

from hotloop.cli.files import write_json
from hotloop.cli.options import NewScreen, ResultFile, output_options
from hotloop.machine.report import machine_report
from hotloop.model.errors import ExitCode
from hotloop.report.terminal.machine import render, render_next


@click.command("machine")
@click.option("--json", "json_file", type=ResultFile(), help="Write the report.")
@click.option("--fresh", is_flag=True, help="Measure again, even if a machine card is stored.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Measure the disk of this folder, where your data is (default: the current one).",
)
@output_options
def command(json_file: Path | None, fresh: bool, folder: Path, new_screen: NewScreen) -> int:
    """Say what this machine can do, and what would spoil a measurement here.

    Rates of disk, memory and compute are measured once, in about 15 s, and kept in ~/.cache/hotloop; the
    environment is looked at every time.
    """
    screen = new_screen()
    try:
        report = machine_report(
            folder, fresh=fresh, progress=lambda what: screen.progress(f"measuring {what}")
        )
    finally:
        screen.done()
    if json_file is not None:
        write_json(json_file, report)
    screen.show(render(report))
    screen.show(render_next(report))
    return ExitCode.DONE
