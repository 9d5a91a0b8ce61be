"""Lines of the program: where the host's time goes, what synchronizes or copies, and what a sample costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hotloop.model.deep import CallSite, CallSites, HostLine, HostSamples, Loading, LoadingPart
from hotloop.model.quantities import byte_size, counted, duration, percent, plain
from hotloop.report.content.source_lines import source_line
from hotloop.report.document import Block, Facts, Table

MAX_ROWS = 15
SHORT = 3
"""Rows in a short rendering."""
LEAST_PART = 0.005
"""Of a sample's time: less has no row."""
LEAST_PADDING = 0.01
LEAST_READS = 0.1
"""A sample: fewer are the process's own."""
_KINDS = {"own": "own code", "hand_over": "hand-over"}
_WHERE = {"worker": "loader worker", "thread": "other thread"}


def host_lines(seen: HostSamples, process: str | None = None, *, num: int = MAX_ROWS) -> Table | None:
    """Return the lines under which the host's time goes; None: no line was sampled.

    Args:
        seen: the samples.
        process: `train`, `worker` or `thread`; None: all.
        num: rows.
    """
    found = [one for one in seen.lines if process in (None, one.process)]
    if not found:
        return None
    samples = counted(sum(line.num for line in found), "sample")
    rest = f"; {num} of {len(found)} lines" if len(found) > num else ""
    return Table(
        ("line", "function", "share", "phase"),
        tuple(_host_line(one) for one in found[:num]),
        caption=f"Where the host's time goes, by line ({samples}{rest})",
        figures=(2,),
    )


def _host_line(one: HostLine) -> tuple[str, ...]:
    phase = one.phase or _WHERE.get(one.process, "")
    return source_line(one.path, one.line), one.function, percent(one.share), phase


def call_sites(seen: CallSites, *, num: int = MAX_ROWS) -> Table | None:
    """Return the calls that wait, copy or create, waits first; None: none in these steps."""
    found = [site for site in seen.sites if site.kind == "sync"]
    found += [site for site in seen.sites if site.kind != "sync" and not site.loading]
    if not found:
        return None
    rest = f"; {num} of {len(found)} lines" if len(found) > num else ""
    alone = "" if seen.functions_watched else "; methods of tensors alone: the program runs compiled code"
    over = counted(seen.num_steps, "step")
    return Table(
        ("line", "call", "a step", "time", "kind"),
        tuple(_call_site(site) for site in found[:num]),
        caption=f"Synchronizations, copies and new tensors, by line (over {over}{rest}{alone})",
        figures=(2, 3),
    )


def _call_site(site: CallSite) -> tuple[str, ...]:
    where = source_line(site.path, site.line)
    if site.through is not None:  # a library calls for the user's line
        where = f"{Path(site.through).name} for {source_line(site.path, site.line, width=0)}"
    kind = f"{site.kind} {site.device}" if site.device != "cpu" else site.kind
    return where, site.call, f"{plain(site.count_per_step)}x", duration(site.time_per_step_s), kind


def loading(seen: Loading, *, num: int = MAX_ROWS) -> Iterator[Block]:
    """Yield the parts of a sample, and what is read for it."""
    who = "the training process" if seen.process == "train" else counted(seen.num_processes, "loader worker")
    yield Table(
        ("part", "what", "a sample", "share", "where"),
        tuple(_part(one) for one in seen.parts if one.share >= LEAST_PART)[:num],
        caption=f"Where a sample's time goes: {duration(seen.sample_s)} in {who} "
        f"({counted(seen.num_samples, 'sample')})",
        figures=(2, 3),
    )
    read = _read(seen)
    rows = [("a sample", read)] if read else []
    if seen.padding >= LEAST_PADDING:
        rows.append(("padding", f"{percent(seen.padding)} of a batch is padding to its longest sample"))
    if seen.padding_beyond >= LEAST_PADDING:
        beyond = f"{percent(seen.padding_beyond)} of a batch is padding beyond its longest sample"
        rows.append(("padding" * (seen.padding < LEAST_PADDING), beyond))
    if seen.private_bytes_per_worker is not None:
        rows.append(("a worker", f"{byte_size(round(seen.private_bytes_per_worker))} of memory of its own"))
    if rows:
        yield Facts(tuple(rows))


def _part(one: LoadingPart) -> tuple[str, ...]:
    where = "" if one.path is None or one.line is None else source_line(one.path, one.line)
    kind = "random" if one.random else _KINDS.get(one.kind, one.kind)
    return kind, one.name, duration(one.time_per_sample_s), percent(one.share), where


def _read(seen: Loading) -> str:
    says = []
    if seen.used_bytes_per_sample is not None:
        says.append(f"{byte_size(round(seen.used_bytes_per_sample))} of tensors")
    reads = seen.reads_per_sample
    if seen.read_bytes_per_sample is not None and reads and reads >= LEAST_READS:
        num = counted(round(reads), "read")
        says.append(f"{byte_size(round(seen.read_bytes_per_sample))} of files in {num}")
    return ", ".join(says)
