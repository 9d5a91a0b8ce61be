"""`hotloop sessions`: what is stored here."""

from __future__ import annotations

import contextlib
import itertools
import shlex
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click
import msgspec

from hotloop.cli.files import write_json
from hotloop.cli.options import NewScreen, ResultFile, output_options
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.model.quantities import duration
from hotloop.model.tuning import TuneResult
from hotloop.observe.run.origin import ORIGIN
from hotloop.report.content.figures import as_fast
from hotloop.report.sections.sessions import StoredSession, stored_sessions
from hotloop.report.terminal import walk
from hotloop.report.terminal.layout import next_steps
from hotloop.store.keys import OBSERVATION, RESULT
from hotloop.store.lock import InUseError
from hotloop.store.nearest import folder_of_sessions
from hotloop.store.session import Session, remove_session, session_bytes, sessions


@click.command("sessions")
@click.option(
    "--remove", "removed", multiple=True, metavar="ID", help="Remove this session; may be repeated."
)
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the newest N, remove the others.")
@click.option("--json", "json_file", type=ResultFile(), help="Write the list.")
@output_options
def command(
    *, removed: tuple[str, ...], keep: int | None, json_file: Path | None, new_screen: NewScreen
) -> int:
    """List the sessions of this folder, the last updated first: what, verdict, size, command.

    Every observe, diagnose and tune stores one in .hotloop/.
    """
    screen = new_screen()
    base = folder_of_sessions(Path.cwd())
    old = _beyond(base, keep) if keep is not None else []
    for name in dict.fromkeys((*removed, *old)):
        try:
            remove_session(base, name)
        except InUseError as error:
            if name in removed:
                raise
            screen.note(f"hotloop: {error.message}, so it is left as it is")
            continue
        screen.note(f"hotloop: removed session {name}")
    found = tuple(_stored(base))
    if json_file is not None:
        write_json(json_file, {"sessions": msgspec.to_builtins(found)})
    screen.show(walk.render_blocks(list(stored_sessions(found))))
    if found:
        screen.show(next_steps([("show the newest that was measured", ["hotloop", "report"])]))
    return ExitCode.DONE


def _beyond(base: Path, keep: int) -> list[str]:
    """Return all sessions but the newest that hold a measurement."""
    paths = sessions(base)
    kept = list(itertools.islice(filter(_holds_one, paths), keep))
    return [path.stem for path in paths if path not in kept]


def _holds_one(path: Path) -> bool:
    try:
        with contextlib.closing(Session(path)) as session:
            seen = session.get(OBSERVATION, Observation)
            return seen is not None or session.get(RESULT, TuneResult) is not None
    except HotloopError:  # it cannot be read
        return False


def _stored(base: Path) -> Iterator[StoredSession]:
    for path in sessions(base):
        when = datetime.fromtimestamp(path.stat().st_mtime).isoformat(sep=" ", timespec="minutes")
        size = session_bytes(path)
        try:
            with contextlib.closing(Session(path)) as session:
                kind, command, verdict = _read(session)
        except HotloopError as error:
            kind, command, verdict = None, None, f"cannot be read: {error.message}"
        yield StoredSession(
            name=path.stem, when=when, kind=kind, command=command, verdict=verdict, size_bytes=size
        )


def _read(session: Session) -> tuple[str | None, str | None, str]:
    of = session.get(ORIGIN, Origin)
    tuned = session.get(RESULT, TuneResult)
    seen = session.get(OBSERVATION, Observation) if tuned is None else None
    words = of.words if of else tuned.command if tuned else seen.command if seen else None
    kind = of.kind if of else "tune" if tuned else "observe"
    return kind, shlex.join(words) if words else None, _verdict(tuned, seen)


def _verdict(tuned: TuneResult | None, seen: Observation | None) -> str:
    if tuned is not None:
        return _tuned(tuned)
    if seen is None:
        return "ended before anything was measured"
    return f"{duration(seen.step.whole_s)} a step (mean)" if seen.step else "no step was measured"


def _tuned(result: TuneResult) -> str:
    if result.plan.steps and result.plan.speedup is not None:
        return as_fast(result.plan.speedup)
    if result.likely:
        return f"likely {result.likely[0].ratio:.2f}x, not proven"
    return "interrupted" if result.interrupted else "nothing was proven faster"
