"""The machine's report as text, at 80 columns."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.machine.card.cache import is_noisy
from hotloop.machine.report import byte_rates
from hotloop.model.foreign_text import shown
from hotloop.model.machine import (
    CheckStatus,
    EnvironmentCheck,
    GpuCard,
    LoaderSettings,
    MachineCard,
    MachineReport,
    Rate,
)
from hotloop.model.quantities import listed
from hotloop.report.terminal.layout import next_steps

_STYLES = {
    CheckStatus.WARNING: "bold red",
    CheckStatus.INFO: "yellow",
    CheckStatus.UNKNOWN: "dim",
    CheckStatus.OK: "green",
}
_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_TIMES = ((365.25 * 86400, "years"), (86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "s"))


def render(report: MachineReport) -> RenderableType:
    """Return the whole report, ready to print."""
    card = report.card
    return Group(
        _verdict(report),
        _heading(report),
        _rates(report),
        *_gpus(card),
        *_advice(card),
        *_missing(card),
        Text("\nwhat was looked at on this machine, now", style="bold"),
        _checks(report.checks),
    )


def render_next(report: MachineReport) -> RenderableType:
    """Return what to type next; COMMAND is what one types to train."""
    steps = []
    if is_noisy(report.card):
        steps.append(("the rates again, when it is quiet", ["hotloop", "machine", "--fresh"]))
    if _warnings(report):
        steps.append(("look again, when that is mended", ["hotloop", "machine"]))
    return next_steps([*steps, ("what holds your program back", ["hotloop", "diagnose", "COMMAND"])])


def _warnings(report: MachineReport) -> list[str]:
    return [check.name for check in report.checks if check.status is CheckStatus.WARNING]


def _notes(report: MachineReport) -> list[str]:
    return [check.name for check in report.checks if check.status is CheckStatus.INFO]


def _verdict(report: MachineReport) -> Text:
    """Whether what is measured here now can be believed."""
    loud = _warnings(report)
    if not loud:
        notes = f"; worth knowing: {listed(_notes(report))}" if _notes(report) else ""
        return Text(f"Ready to measure: nothing here spoils times{notes}.\n", style="bold")
    return Text(f"Not ready to measure: {listed(loud)} would spoil it.\n", style="bold")


def _heading(report: MachineReport) -> Text:
    card = report.card
    who, cores = card.identity, card.cores
    wiring = f"{cores.num_usable} of {cores.num_logical} cores usable"
    nodes = f"{len(cores.numa_nodes)} NUMA node{'s' if len(cores.numa_nodes) > 1 else ''}"
    facts = [wiring, nodes if cores.numa_nodes else "NUMA not told", f"{who.memory_bytes / 2**30:.1f} GiB"]
    if cores.hypervisor:
        facts.append("virtual")
    torch = f"torch {card.torch_version}" if card.torch_version else "no torch"
    text = Text(f"{who.cpu_model}\n", style="bold")
    text.append(f"{', '.join(facts)}\n", style="not bold")
    text.append(f"{who.os}, Python {who.python_version}, {torch}\n", style="not bold")
    text.append(f"{_when(report)}\n", style="red not bold" if is_noisy(card) else "dim not bold")
    return text


def _when(report: MachineReport) -> str:
    card = report.card
    when = f"measured {card.measured_at[:16].replace('T', ' ')} UTC in {card.wall_s:.0f} s"
    if card.foreign_ratio is not None:
        when += f"; other processes used {card.foreign_ratio:.0%} of the CPU"
    if is_noisy(card):
        return f"{when}\nthe rates are too low: hotloop machine --fresh when the machine is quiet"
    return f"{when}\nkept since then; --fresh measures again" if report.cached else when


def _rates(report: MachineReport) -> Table:
    """One row a rate; how each was measured is in the JSON."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left")
    table.add_column("rate", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("low to high", justify="right", no_wrap=True)
    table.add_column("a terabyte takes", justify="right", no_wrap=True)
    for name, rate in byte_rates(report.card):
        table.add_row(
            name.replace("_", " ").replace("kib", " KiB"),
            *_spread(rate, "B/s", _BINARY),
            span(report.petabyte_s[name] / 1000),
        )
    reads = report.card.disk and report.card.disk.random_4kib_reads_per_s
    if reads:
        spread = f"{reads.low:,.0f} to {reads.high:,.0f}"
        table.add_row("disk random 4 KiB read", f"{reads.median:,.0f} reads/s", spread, "")
    for device in report.card.devices:
        for kind, rates in (
            ("matmul", device.matmul_flop_per_s),
            ("convolution", device.convolution_flop_per_s),
        ):
            for precision, rate in rates.items():
                table.add_row(f"{device.device} {kind} {precision}", *_spread(rate, "FLOP/s"), "")
    return table


def _spread(rate: Rate, unit: str, prefixes: Sequence[tuple[float, str]] = _SI) -> tuple[str, str]:
    factor, prefix = next(((f, p) for f, p in prefixes if rate.median >= f), (1.0, ""))
    low, high = significant(rate.low / factor), significant(rate.high / factor)
    return f"{significant(rate.median / factor)} {prefix}{unit}", f"{low} to {high}"


def _gpus(card: MachineCard) -> Iterator[RenderableType]:
    for index, gpu in enumerate(card.gpus):
        yield Text(f"\ngpu {index}: {gpu.name}{_details(gpu)}", style="bold")
        known = gpu.gpu_class
        if known is None:
            yield Text("  not a class with known settings")
            continue
        tf32 = ", tf32" if known.tf32 else ""
        yield Text(f"  class {known.name}: try {known.half_precision} first{tf32}\n  {_loader(known.loader)}")
        yield Text(f"  a start, not a measurement: {known.source}", style="dim")


def _details(gpu: GpuCard) -> str:
    memory = None if gpu.memory_bytes is None else f"{gpu.memory_bytes / 2**30:.0f} GiB"
    links = None if gpu.num_links is None else f"{gpu.num_links} links"
    return "".join(f", {fact}" for fact in (memory, gpu.pcie and f"PCIe {gpu.pcie}", links) if fact)


def _advice(card: MachineCard) -> Iterator[RenderableType]:
    if card.cpu_loader is not None:
        yield Text(f"\na loader for inference on this CPU, as a start: {_loader(card.cpu_loader)}")
    disk = card.disk
    if disk is not None:
        yield Text(f"\ndisk: {disk.filesystem}, mounted at {disk.mount}", style="dim")
        if not disk.cache_bypassed:
            yield Text("its files came from memory: these are memory's rates")
    yield Text(
        "to compare: a hard disk reads about 140 MiB/s in order, an NVMe disk 2,900 MiB/s", style="dim"
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


def _missing(card: MachineCard) -> Iterator[RenderableType]:
    if card.not_measured:
        yield Text("\nnot measured", style="bold")
    for gap in card.not_measured:
        yield Text(f"  {gap.what}: {gap.why}")
        if gap.hint:
            yield Text(f"    {gap.hint}", style="cyan")


def _checks(checks: tuple[EnvironmentCheck, ...]) -> Table:
    """What needs doing in full, the rest in a line."""
    table = Table.grid(padding=(0, 1))
    table.add_column(width=9, no_wrap=True)
    table.add_column(overflow="fold")
    for status in (CheckStatus.WARNING, CheckStatus.INFO):
        for check in checks:
            if check.status is status:
                table.add_row(_label(status), _remedy(check))
    for status in (CheckStatus.UNKNOWN, CheckStatus.OK):
        names = [f"{check.name} ({shown(check.seen)})" for check in checks if check.status is status]
        if names:
            table.add_row(_label(status), Text("; ".join(names)))
    return table


def _label(status: CheckStatus) -> Text:
    return Text(f"  {status.value}", style=_STYLES[status])


def _remedy(check: EnvironmentCheck) -> Text:
    text = Text(f"{check.name}: {shown(check.seen)}\n")
    text.append(f"{check.why}\n", style="dim")
    return text.append(check.fix, style="cyan")


def span(seconds: float) -> str:
    """Return a long time in the unit that suits it: `4.5 days`."""
    size, unit = next(((s, u) for s, u in _TIMES if seconds >= s), (1.0, "s"))
    return f"{significant(seconds / size)} {unit}"


def significant(value: float) -> str:
    """Return three significant digits without an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"
