"""Where a sample's time goes, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.deep import Loading, LoadingPart
from hotloop.model.foreign_text import shown
from hotloop.model.quantities import byte_size, counted, duration, percent
from hotloop.report.terminal.profile import place

MAX_ROWS = 9
LEAST = 0.005
"""Of a sample's time: less is not named on the screen."""
LEAST_PADDING = 0.01
LEAST_READS = 0.1
"""A sample: less is the process's own affairs."""
NAME = 30
_KINDS = {"own": "own code", "hand_over": "hand-over"}


def loading(seen: Loading) -> Iterator[RenderableType]:
    """Yield the parts of a sample as a table, and what is read for it."""
    who = "the training process" if seen.process == "train" else counted(seen.num_processes, "loader worker")
    yield Text(
        f"\nwhere a sample's time goes: {duration(seen.sample_s)} in {who} "
        f"({counted(seen.num_samples, 'sample')})",
        style="bold",
    )
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for title in ("part", "what", "a sample", "share", "where"):
        right = title in {"a sample", "share"}
        table.add_column(title, justify="right" if right else "left", no_wrap=True, min_width=len(title))
    for part in [part for part in seen.parts if part.share >= LEAST][:MAX_ROWS]:
        table.add_row(*_row(part))
    yield table
    if says := _read(seen):
        yield Text(f" {says}")
    if seen.padding >= LEAST_PADDING:
        yield Text(f" {percent(seen.padding)} of a batch is padding to its longest sample")
    if seen.padding_beyond >= LEAST_PADDING:
        yield Text(f" {percent(seen.padding_beyond)} of a batch is padding beyond its longest sample")
    if seen.private_bytes_per_worker is not None:
        yield Text(
            f" {byte_size(round(seen.private_bytes_per_worker))} of memory that each worker shares with nobody"
        )


def _row(part: LoadingPart) -> Iterator[str]:
    yield "random" if part.random else _KINDS.get(part.kind, part.kind)
    name = shown(part.name)
    yield name if len(name) <= NAME else f"{name[: NAME - 1]}…"
    yield duration(part.time_per_sample_s)
    yield percent(part.share)
    yield "" if part.path is None or part.line is None else place(part.path, part.line)


def _read(seen: Loading) -> str:
    says = []
    if seen.used_bytes_per_sample is not None:
        says.append(f"{byte_size(round(seen.used_bytes_per_sample))} of tensors a sample")
    if (
        seen.read_bytes_per_sample is not None
        and seen.reads_per_sample
        and seen.reads_per_sample >= LEAST_READS
    ):
        reads = counted(round(seen.reads_per_sample), "read")
        says.append(f"{byte_size(round(seen.read_bytes_per_sample))} of files in {reads}")
    return ", ".join(says)
