"""What `hotloop data` says, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.data import BenchReport, CheckReport, PackReport
from hotloop.model.foreign_text import shown
from hotloop.model.quantities import byte_size, counted, duration, rate, significant, span
from hotloop.report.terminal.layout import facts, next_steps
from hotloop.stats.reading import in_order_against_random

MIB = 1 << 20


def render_pack(report: PackReport) -> RenderableType:
    """Return what was packed, and how to read it."""
    plan = report.plan
    rows = [
        ("packed", f"{counted(plan.num_samples, 'sample')} of {plan.source}"),
        (
            "into",
            f"{report.folder}: {counted(plan.num_shards, 'shard')} of {plan.format}, {byte_size(report.total_bytes)}",
        ),
        ("took", f"{duration(report.wall_s)} for {counted(report.num_written, 'shard')}{_kept(report)}"),
        ("classes", f"{len(plan.classes):,}" if plan.classes else ""),
        ("read", "from hotloop.data import PackedDataset"),
        ("", f"dataset = PackedDataset({report.folder!r})"),
    ]
    if plan.format == "tar":
        rows += [("", "or with WebDataset, Hugging Face datasets, or any reader of tar files")]
    steps = [("compare with the original", ["hotloop", "data", "check", report.folder])]
    return Group(facts([row for row in rows if row[1]]), next_steps(steps))


def _kept(report: PackReport) -> str:
    return f"; {counted(report.num_kept, 'shard')} kept from before" if report.num_kept else ""


def render_check(report: CheckReport) -> RenderableType:
    """Return whether a pack is whole, and how fast it is read beside its original."""
    verdict = "complete and whole" if report.passed else "NOT what was packed"
    rows = [
        (report.folder, ""),
        ("verdict", verdict),
        (
            "shards",
            f"{report.num_shards}; {len(report.missing_shards)} missing, {len(report.damaged_shards)} damaged",
        ),
        ("samples", _compared(report)),
        *_speeds(report),
    ]
    lines = [Text(f"  missing: {shown(name)}", style="red") for name in report.missing_shards[:20]]
    lines += [Text(f"  damaged: {shown(name)}", style="red") for name in report.damaged_shards[:20]]
    lines += [Text(f"  differs: {shown(key)}", style="red") for key in report.different_keys[:20]]
    steps = (
        [("time its storage", ["hotloop", "data", "bench", report.folder])]
        if report.passed
        else [("pack what is missing or damaged anew", ["hotloop", "data", "pack", "SRC", report.folder])]
    )
    return Group(Text(rows[0][0], style="bold"), facts(rows[1:]), *lines, next_steps(steps))


def _compared(report: CheckReport) -> str:
    if report.original is not None:
        return f"{report.num_samples:,}, not compared with the original: {report.original}"
    same = report.num_compared - report.num_different
    return f"{same:,} of {report.num_samples:,} are the original's, byte for byte"


def _speeds(report: CheckReport) -> Iterator[tuple[str, str]]:
    for name, speed in (("original", report.original_samples_per_s), ("packed", report.packed_samples_per_s)):
        if speed is not None:
            yield name, f"{rate(speed.median)} samples/s [{rate(speed.low)}, {rate(speed.high)}]"
    if report.speedup is not None:
        speedup = report.speedup
        yield (
            "faster" if speedup.low > 1 else "slower" if speedup.high < 1 else "no difference",
            (
                f"{significant(speedup.median)}x [{significant(speedup.low)}, {significant(speedup.high)}] over "
                f"{counted(speedup.num, 'block')}: {speedup.method}"
            ),
        )


def render_bench(report: BenchReport) -> RenderableType:
    """Return what the storage gives, a line for each way of reading."""
    kind = f"{report.filesystem} at {report.mount}"
    where = f"NETWORK: {report.server} ({kind})" if report.server is not None else kind
    rows = [
        ("data", f"{report.folder}: {counted(report.num_files, 'file')}, {byte_size(report.total_bytes)}"),
        ("", f"half of them have at most {byte_size(report.median_file_bytes)}"),
        ("storage", where),
    ]
    if report.in_memory:
        rows.append(("", "its files live in memory: there is no cold read, and these are memory's rates"))
    note = "by: processes; [slowest, fastest repeat]; cold: pages dropped, names known"
    steps = [("into shards, which are read in order", ["hotloop", "data", "pack", report.folder, "DEST"])]
    return Group(
        Text(f"{_verdict(report)}\n", style="bold"),
        facts(rows),
        Text(""),
        _rates(report),
        Text(note, style="dim"),
        next_steps(steps),
    )


def _verdict(report: BenchReport) -> str:
    """Reading in order, as shards are, beside reading at random by as many processes, cold where there is that."""
    found = in_order_against_random(report)
    if found is None:
        return "Too little was read to compare reading in order with reading at random."
    cache, num_rows, ratio = found
    times = f"{significant(ratio.ratio)}x [{significant(ratio.low)}, {significant(ratio.high)}]"
    over = f"{cache}, by as many processes, {num_rows} pairs of rows"
    proven = "; no difference is proven" if ratio.low <= 1 <= ratio.high else ""
    return f"In order files are read {times} as fast as at random ({over}){proven}."


def _rates(report: BenchReport) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("reads", no_wrap=True)
    for name in ("by", "MiB/s", "[low, high]", "reads/s", "a terabyte takes"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in report.rates:
        speed = one.bytes_per_s
        table.add_row(
            f"{one.cache} {one.order}",
            str(one.num_workers),
            rate(speed.median / MIB),
            f"[{rate(speed.low / MIB)}, {rate(speed.high / MIB)}]",
            rate(one.reads_per_s),
            span(one.terabyte_s),
        )
    return table
