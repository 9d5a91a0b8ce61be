"""Data sets: what was packed, whether a pack is whole, and what the storage gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotloop.model.data import BenchReport, CheckReport, PackReport
from hotloop.model.quantities import byte_size, counted, duration, rate, significant, span
from hotloop.report.document import Block, Facts, Note, Table
from hotloop.stats.reading import in_order_against_random

MIB = 1 << 20
MAX_NAMED = 20
"""Of the missing, the damaged and the different, each."""


def packed(report: PackReport) -> Iterator[Block]:
    """Yield what was packed, and how to read it."""
    plan = report.plan
    shards = f"{counted(plan.num_shards, 'shard')} of {plan.format}, {byte_size(report.total_bytes)}"
    kept = f"; {counted(report.num_kept, 'shard')} kept from before" if report.num_kept else ""
    rows = [
        ("packed", f"{counted(plan.num_samples, 'sample')} of {plan.source}"),
        ("into", f"{report.folder}: {shards}"),
        ("took", f"{duration(report.wall_s)} for {counted(report.num_written, 'shard')}{kept}"),
        ("classes", f"{len(plan.classes):,}" if plan.classes else ""),
        ("read", "from hotloop.data import PackedDataset"),
        ("", f"dataset = PackedDataset({report.folder!r})"),
    ]
    if plan.format == "tar":
        rows += [("", "or with WebDataset, Hugging Face datasets, or any reader of tar files")]
    yield Facts(tuple(row for row in rows if row[1]))


def checked(report: CheckReport) -> Iterator[Block]:
    """Yield whether a pack is whole, and how fast it is read beside its original."""
    yield Note(
        f"{report.folder}: {'complete and whole' if report.passed else 'NOT what was packed'}", "strong"
    )
    missing, damaged = report.missing_shards, report.damaged_shards
    yield Facts(
        (
            ("shards", f"{report.num_shards}; {len(missing)} missing, {len(damaged)} damaged"),
            *_named("missing", missing),
            *_named("damaged", damaged),
            ("samples", _compared(report)),
            *_named("differs", report.different_keys),
            *_speeds(report),
        )
    )


def _named(key: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield from ((key * (not at), name) for at, name in enumerate(names[:MAX_NAMED]))


def _compared(report: CheckReport) -> str:
    if report.original is not None:
        return f"{report.num_samples:,}, not compared with the original: {report.original}"
    same = report.num_compared - report.num_different
    return f"{same:,} of {report.num_samples:,} are the original's, byte for byte"


def _speeds(report: CheckReport) -> Iterator[tuple[str, str]]:
    for name, speed in (("original", report.original_samples_per_s), ("packed", report.packed_samples_per_s)):
        if speed is not None:
            yield name, f"{rate(speed.median)} samples/s [{rate(speed.low)}, {rate(speed.high)}]"
    speedup = report.speedup
    if speedup is not None:
        yield (
            "faster" if speedup.low > 1 else "slower" if speedup.high < 1 else "not proven",
            f"{significant(speedup.median)}x [{significant(speedup.low)}, {significant(speedup.high)}] over "
            f"{counted(speedup.num, 'block')}: {speedup.method}",
        )


def storage(report: BenchReport) -> Iterator[Block]:
    """Yield what the storage gives, a row for each way of reading."""
    yield Note(_verdict(report), "strong")
    kind = f"{report.filesystem} at {report.mount}"
    rows = [
        ("data", f"{report.folder}: {counted(report.num_files, 'file')}, {byte_size(report.total_bytes)}"),
        ("", f"half of them have at most {byte_size(report.median_file_bytes)}"),
        ("storage", f"NETWORK: {report.server} ({kind})" if report.server is not None else kind),
    ]
    if report.in_memory:
        rows.append(("", "its files live in memory: there is no cold read, and these are memory's rates"))
    yield Facts(tuple(rows))
    yield _rates(report)
    yield Note("by: processes; [slowest, fastest repeat]; cold: pages dropped, names known", "dim")


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
    return Table(
        ("reads", "by", "MiB/s", "[low, high]", "reads/s", "a terabyte takes"),
        tuple(
            (
                f"{one.cache} {one.order}",
                str(one.num_workers),
                rate(one.bytes_per_s.median / MIB),
                f"[{rate(one.bytes_per_s.low / MIB)}, {rate(one.bytes_per_s.high / MIB)}]",
                rate(one.reads_per_s),
                span(one.terabyte_s),
            )
            for one in report.rates
        ),
        figures=(1, 2, 3, 4, 5),
    )
