"""`hotloop observe --pid`: a training process that runs already."""

from __future__ import annotations

from pathlib import Path

from hotloop.cli.files import write_json
from hotloop.cli.report import keep_page
from hotloop.cli.sample_files import SampleFiles
from hotloop.cli.stored import stored_or_told
from hotloop.model.errors import ExitCode
from hotloop.observe.attach.look import look
from hotloop.observe.attach.trainer import trainer
from hotloop.observe.run.origin import origin
from hotloop.report.terminal.layout import next_steps
from hotloop.report.terminal.observation import render
from hotloop.report.terminal.screen import Screen

SECONDS = 10.0
"""500 looks: a share of 10% is then known to within 3 points."""


def observe_process(
    screen: Screen,
    pid: int,
    seconds: float | None,
    samples: SampleFiles,
    json_file: Path | None,
    *,
    verbose: bool = False,
) -> int:
    """Look at a process, keep what was seen and show it."""
    asked, pid = pid, trainer(pid)
    if pid != asked:
        screen.note(
            f"hotloop: process {asked} does not train; looking at process {pid}, the newest below it that does"
        )
    seconds = seconds or SECONDS
    screen.progress(f"sampling process {pid} for {seconds:.0f} s without stopping it")
    try:
        seen = look(pid, seconds)
    finally:
        screen.done()
    session = stored_or_told(screen, seen, origin("observe", seen.command, runs=False))
    if json_file is not None:
        write_json(json_file, seen)
    screen.show(render(seen, verbose=verbose))
    screen.show(
        next_steps(
            [
                (
                    "steps, phases and causes, in a run of its own",
                    ["hotloop", "diagnose", *(seen.command or ("COMMAND",))],
                )
            ]
        )
    )
    samples.write(seen)
    if session is not None:
        keep_page(screen, session)
    return ExitCode.DONE
