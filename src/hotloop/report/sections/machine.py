"""The machine: what it can do, and what would spoil a measurement on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotloop.machine.card.cache import is_noisy
from hotloop.machine.report import byte_rates
from hotloop.model.machine import (
    CheckStatus,
    EnvironmentCheck,
    GpuCard,
    LoaderSettings,
    MachineCard,
    MachineReport,
    Rate,
)
from hotloop.model.quantities import counted, listed, rate, significant, span
from hotloop.report.document import Block, Details, Document, Facts, Note, Section, Table

_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def machine(report: MachineReport) -> Document:
    """Return whether times can be measured here now, the rates, settings to start from, and every check."""
    card, loud = report.card, names(report, CheckStatus.WARNING)
    advice = Facts((*_advice(card), *_missing(card)))
    return Document(
        title="",
        subtitle="",
        verdict=_verdict(loud, names(report, CheckStatus.INFO)),
        good=not loud,
        tiles=(),
        sections=(
            Section(anchor="card", title=card.identity.cpu_model, blocks=(*_heading(report), _rates(report))),
            *(_gpu(index, gpu) for index, gpu in enumerate(card.gpus)),
            Section(anchor="advice", title="", blocks=(advice,)),
            Section(
                anchor="checks",
                title="what was looked at on this machine, now",
                blocks=tuple(_checks(report.checks)),
            ),
        ),
        footer="",
    )


def names(report: MachineReport, status: CheckStatus) -> list[str]:
    """Return the checks that ended so."""
    return [check.name for check in report.checks if check.status is status]


def _verdict(loud: Sequence[str], notes: Sequence[str]) -> str:
    """Return whether what is measured here now can be believed."""
    if loud:
        return f"Not ready to measure: {listed(loud)} would spoil it."
    return f"Ready to measure: nothing here spoils times{f'; worth knowing: {listed(notes)}' * bool(notes)}."


def _heading(report: MachineReport) -> Iterator[Note]:
    card = report.card
    who, cores = card.identity, card.cores
    nodes = counted(len(cores.numa_nodes), "NUMA node") if cores.numa_nodes else "NUMA not told"
    virtual = ", virtual" if cores.hypervisor else ""
    yield Note(
        f"{cores.num_usable} of {cores.num_logical} cores usable, {nodes}, {who.memory_bytes / 2**30:.1f} GiB{virtual}"
    )
    torch = f"torch {card.torch_version}" if card.torch_version else "no torch"
    yield Note(f"{who.os}, Python {who.python_version}, {torch}")
    when = f"measured {card.measured_at[:16].replace('T', ' ')} UTC in {card.wall_s:.0f} s"
    if card.foreign_ratio is not None:
        when += f"; other processes used {card.foreign_ratio:.0%} of the CPU"
    yield Note(when, "dim")
    if is_noisy(card):
        yield Note("the rates are too low: hotloop machine --fresh when the machine is quiet", "warning")
    elif report.cached:
        yield Note("kept since then; --fresh measures again", "dim")


def _rates(report: MachineReport) -> Table:
    """Return one row a rate; how each was measured is in the JSON."""
    return Table(
        ("rate", "median", "low to high", "a terabyte takes"), tuple(_rows(report)), figures=(1, 2, 3)
    )


def _rows(report: MachineReport) -> Iterator[tuple[str, str, str, str]]:
    for name, one in byte_rates(report.card):
        words = name.replace("_", " ").replace("kib", " KiB")
        yield words, *_spread(one, "B/s", _BINARY), span(report.petabyte_s[name] / 1000)
    reads = report.card.disk and report.card.disk.random_4kib_reads_per_s
    if reads:
        spread = f"{rate(reads.low)} to {rate(reads.high)}"
        yield "disk random 4 KiB read", f"{rate(reads.median)} reads/s", spread, ""
    for device in report.card.devices:
        for kind, rates in (
            ("matmul", device.matmul_flop_per_s),
            ("convolution", device.convolution_flop_per_s),
        ):
            for precision, one in rates.items():
                yield f"{device.device} {kind} {precision}", *_spread(one, "FLOP/s", _SI), ""


def _spread(one: Rate, unit: str, prefixes: Sequence[tuple[float, str]]) -> tuple[str, str]:
    factor, prefix = next(((f, p) for f, p in prefixes if one.median >= f), (1.0, ""))
    low, high = significant(one.low / factor), significant(one.high / factor)
    return f"{significant(one.median / factor)} {prefix}{unit}", f"{low} to {high}"


def _gpu(index: int, gpu: GpuCard) -> Section:
    memory = None if gpu.memory_bytes is None else f"{gpu.memory_bytes / 2**30:.0f} GiB"
    links = None if gpu.num_links is None else counted(gpu.num_links, "link")
    details = ", ".join(filter(None, (gpu.name, memory, gpu.pcie and f"PCIe {gpu.pcie}", links)))
    return Section(anchor=f"gpu-{index}", title=f"gpu {index}: {details}", blocks=(_class(gpu),))


def _class(gpu: GpuCard) -> Block:
    known = gpu.gpu_class
    if known is None:
        return Note("not a class with known settings")
    return Facts(
        (
            ("class", f"{known.name}: try {known.half_precision} first{', tf32' * known.tf32}"),
            ("loader", _loader(known.loader)),
            ("source", f"a start, not a measurement: {known.source}"),
        )
    )


def _loader(settings: LoaderSettings) -> str:
    workers = f"num_workers={settings.min_workers}"
    if settings.max_workers > settings.min_workers:
        workers = f"num_workers {settings.min_workers}-{settings.max_workers}"
    words = [workers, f"pin_memory={settings.pin_memory}"]
    if settings.prefetch_factor is not None:
        words.append(f"persistent_workers={settings.persistent_workers}")
        words.append(f"prefetch_factor={settings.prefetch_factor}")
    return ", ".join(words)


def _advice(card: MachineCard) -> Iterator[tuple[str, str]]:
    if card.cpu_loader is not None:
        yield "loader", f"for inference on this CPU, as a start: {_loader(card.cpu_loader)}"
    if card.disk is not None:
        yield "disk", f"{card.disk.filesystem}, mounted at {card.disk.mount}"
        if not card.disk.cache_bypassed:
            yield "", "its files came from memory: these are memory's rates"
    yield "to compare", "a hard disk reads about 140 MiB/s in order, an NVMe disk 2,900"


def _missing(card: MachineCard) -> Iterator[tuple[str, str]]:
    for at, gap in enumerate(card.not_measured):
        yield "not measured" * (not at), f"{gap.what}: {gap.why}"
        if gap.hint:
            yield "", gap.hint


def _checks(checks: Sequence[EnvironmentCheck]) -> Iterator[Block]:
    """Yield what needs doing in full, the rest in a line."""
    for status in (CheckStatus.WARNING, CheckStatus.INFO):
        for check in checks:
            if check.status is status:
                rows = (("seen", check.seen), ("why", check.why), ("do", check.fix))
                yield Details(
                    check.name,
                    (Facts(tuple(row for row in rows if row[1])),),
                    badge=status.value,
                    open=True,
                )
    rest = (CheckStatus.UNKNOWN, CheckStatus.OK)
    said = [
        (
            status.value,
            "; ".join(f"{check.name} ({check.seen})" for check in checks if check.status is status),
        )
        for status in rest
    ]
    yield Facts(tuple(row for row in said if row[1]))
