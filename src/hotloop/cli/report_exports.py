"""What `hotloop report` writes for other tools."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import numpy as np

from hotloop.cli.files import write_json, write_text
from hotloop.cli.options import ResultFile
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.observation import Observation
from hotloop.report.content.content import ReportContent
from hotloop.report.exports.chrome import chrome_trace
from hotloop.report.exports.tables import as_csv, raw_tables
from hotloop.report.formats.speedscope import speedscope

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = ResultFile()
NAMES = ("csv", "parquet", "tensorboard", "perfetto", "speedscope")


def export_options(function: Any) -> Any:
    """`--csv`, `--parquet`, `--tensorboard`, `--perfetto`, `--speedscope`."""
    options = (
        click.option(
            "--csv",
            type=_FOLDER,
            metavar="DIR",
            help="Write every raw sample as CSV.",
        ),
        click.option("--parquet", type=_FOLDER, metavar="DIR", help="Write every raw sample as Parquet."),
        click.option("--tensorboard", type=_FOLDER, metavar="DIR", help="Write scalars and a profile."),
        click.option("--perfetto", type=_FILE, metavar="FILE", help="Write steps and monitors as a trace."),
        click.option("--speedscope", type=_FILE, metavar="FILE", help="Write the host samples."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def export(content: ReportContent, wanted: dict[str, Path | None]) -> Iterator[Path]:
    """Write what is wanted, and say where.

    Raises:
        HotloopError: it cannot be written, needs a package, or was not measured.
    """
    for name in NAMES:
        target = wanted.get(name)
        if target is not None:
            _WRITERS[name](content, target)
            yield target


def _observed(content: ReportContent) -> Observation:
    if content.observation is None or not content.observation.series:
        raise HotloopError(
            f"the session {content.session} holds no raw steps", "observe again: sessions of today keep them"
        )
    return content.observation


def _csv(content: ReportContent, folder: Path) -> None:
    _made(folder)
    for name, table in raw_tables(content).items():
        write_text(folder / f"{name}.csv", as_csv(table))


def _parquet(content: ReportContent, folder: Path) -> None:
    arrow, parquet = _library("pyarrow", "parquet"), _library("pyarrow.parquet", "parquet")
    _made(folder)
    for name, table in raw_tables(content).items():
        columns = {key: list(column) for key, column in table.items()}
        parquet.write_table(arrow.table(columns), folder / f"{name}.parquet")


def _tensorboard(content: ReportContent, folder: Path) -> None:
    """Scalars as TensorBoard's own library writes them, and the trace that its profiler plug-in looks for."""
    seen = _observed(content)
    writers = _library("tensorboard.summary.writer.event_file_writer", "tensorboard")
    event = _library("tensorboard.compat.proto.event_pb2", "tensorboard")
    summary = _library("tensorboard.compat.proto.summary_pb2", "tensorboard")
    _made(folder)
    began_s = datetime.fromisoformat(content.origin.began).timestamp() if content.origin else 0.0
    writer = writers.EventFileWriter(str(folder))
    for tag, step, time_s, value in _scalars(content, seen):
        told = summary.Summary(value=[summary.Summary.Value(tag=tag, simple_value=value)])
        writer.add_event(event.Event(wall_time=began_s + time_s, step=step, summary=told))
    writer.close()
    for one in seen.series:
        name = content.session if one.rank is None else f"{content.session}-rank-{one.rank}"
        write_json(folder / f"{name}.pt.trace.json", chrome_trace(seen, [one]))


def _scalars(content: ReportContent, seen: Observation) -> Iterator[tuple[str, int, float, float]]:
    for one in seen.series:
        suffix = f"/rank_{one.rank}" if one.rank is not None else ""
        begins = np.frombuffer(one.begin_s, "<f8").tolist()
        columns = {
            "step_s": one.duration_s,
            **{f"phases/{name}_s": column for name, column in one.phases.items()},
        }
        for name, column in columns.items():
            for step, value in enumerate(np.frombuffer(column, "<f4").tolist()):
                if not math.isnan(value):  # a step of which only the end was recorded has no phases
                    yield f"{name}{suffix}", step, begins[step], value
    found = content.losses
    curves = (
        {"original": found.original, "plan": found.plan[0] if found.plan else ()} if found is not None else {}
    )
    for name, curve in curves.items():
        for step, loss in enumerate(curve):  # trials keep no time of a step
            yield f"loss/{name}", step, 0.0, loss


def _perfetto(content: ReportContent, file: Path) -> None:
    write_json(file, chrome_trace(_observed(content)))


def _speedscope(content: ReportContent, file: Path) -> None:
    deep = content.observation.deep if content.observation else None
    if deep is None or deep.host is None:
        raise HotloopError(
            f"the session {content.session} holds no host samples", "hotloop observe takes them"
        )
    write_json(file, speedscope(deep.host, content.session))


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HotloopError(
            f"{folder} cannot be made: {error.strerror}", "choose another place for it", ExitCode.MACHINE
        ) from error


def _library(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise HotloopError(
            f"this needs {module.split('.', maxsplit=1)[0]}, which is not installed",
            f"pip install 'hotloop[{extra}]'",
            ExitCode.MACHINE,
        ) from error


_WRITERS = {
    "csv": _csv,
    "parquet": _parquet,
    "tensorboard": _tensorboard,
    "perfetto": _perfetto,
    "speedscope": _speedscope,
}
