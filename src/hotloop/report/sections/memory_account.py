"""What holds the peak: by class, by line, by module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotloop.model.memory_account import CLASSES, HeldLine, PeakAccount
from hotloop.model.observation import Memory
from hotloop.model.quantities import byte_size, counted, percent
from hotloop.report.content.source_lines import source_line
from hotloop.report.document import Block, Facts, Table

SHORT = 3
"""Lines in a short rendering."""
MIN_SHARE_TO_REPORT = 0.005
"""Of the peak: smaller classes are left out of a short rendering, which shows whole percents."""


def peak_in_short(account: PeakAccount, memory: Memory | None = None) -> Facts:
    """Return the account for a terminal: where the peak is, its classes, and the lines that hold most.

    Args:
        account: of the peak.
        memory: of the process, which the account is held against on a CPU; None: it is not.
    """
    rows = [("at the peak", _where(account)), ("", _classes(account.held.by_class, account.peak_bytes))]
    rows += [("held by" if at == 0 else "", _line_told(one)) for at, one in enumerate(account.lines[:SHORT])]
    rows += [("", _others_told(account))] if account.share("other") >= MIN_SHARE_TO_REPORT else []
    return Facts((*rows, *(_of_process(account, memory) if memory is not None else ())))


def _of_process(account: PeakAccount, memory: Memory) -> Iterator[tuple[str, str]]:
    """Yield what the process had in use at most, and what of it the account does not explain."""
    most, imported = memory.host_peak_bytes, memory.import_bytes
    if account.device != "cpu" or most is None or imported is None:
        return
    rest = most - account.peak_bytes - imported
    left = (
        f"unattributed {byte_size(rest)} (libraries loaded later, arrays, malloc's slack)" if rest > 0 else ""
    )
    parts = [
        f"tensors {byte_size(account.peak_bytes)}",
        f"interpreter and imports {byte_size(imported)}",
        left,
    ]
    yield "process", f"{byte_size(most)} resident at most: {', '.join(part for part in parts if part)}"


def peak_tables(account: PeakAccount) -> Iterator[Block]:
    """Yield the account as tables: classes, peaks of the phases, lines, modules, other tensors."""
    classes = account.held.by_class
    yield Table(
        ("class", "at the peak", "share"),
        tuple(
            (CLASSES.get(name, name), byte_size(size), percent(size / account.peak_bytes))
            for name, size in classes.items()
        ),
        caption=f"What holds the peak of {byte_size(account.peak_bytes)} on {account.device}, "
        f"{_where(account, with_size=False)}; {_spread(account)}",
        figures=(1, 2),
        bars=tuple(float(size) for size in classes.values()),
    )
    yield _by_phase(account)
    for title, lines in (
        ("Activations and temporaries at the peak, by line", account.lines),
        ("Saved for the backward when it begins, by line", account.activations),
    ):
        if lines:
            yield _lines(title, lines)
    if account.held.by_module:
        yield Table(
            ("module", "at the peak"),
            tuple((path or "outside the model", byte_size(size)) for path, size in _modules(account)),
            caption="Activations and temporaries, by module",
            figures=(1,),
        )
    if account.others:
        yield Table(
            ("shape", "type", "bytes", "has a graph"),
            tuple(
                (_shape(one.shape), one.dtype, byte_size(one.held_bytes), "yes" if one.keeps_graph else "no")
                for one in account.others
            ),
            caption="Other tensors: held before the steps, by no model and no optimizer",
            figures=(2,),
        )
    yield Facts((("method", account.method),))


def _where(account: PeakAccount, *, with_size: bool = True) -> str:
    """Say when the peak is reached, and by which line."""
    size = f"{byte_size(account.peak_bytes)} of tensors, " if with_size else "reached "
    by = account.reached_by
    if by is None:
        return f"{size}in the phase {account.phase}"
    what = f"{'backward of ' if by.in_backward else ''}{source_line(by.path, by.line)}"
    return f"{size}in the phase {account.phase}, at {what} ({by.operator})"


def _spread(account: PeakAccount) -> str:
    low, high = byte_size(account.low_bytes), byte_size(account.high_bytes)
    steps = counted(account.num_steps, "step")
    return f"the same in {steps}" if low == high else f"{low} to {high} in {steps}"


def _classes(by_class: dict[str, int], total: int) -> str:
    told = [
        f"{CLASSES.get(name, name)} {byte_size(size)}"
        for name, size in by_class.items()
        if size >= MIN_SHARE_TO_REPORT * total
    ]
    return ", ".join(told)


def _line_told(one: HeldLine) -> str:
    what = "temporary" if one.in_backward else one.operator
    shape = f", {one.dtype} {_shape(one.shape)}" if one.shape else ""
    place = source_line(one.path, one.line)
    backward = "backward of " if one.in_backward else ""
    return f"{backward}{place} {byte_size(one.held_bytes)} ({counted(one.num, 'tensor')}, {what}{shape})"


def _others_told(account: PeakAccount) -> str:
    first = account.others[0] if account.others else None
    largest = f", the largest {first.dtype} {_shape(first.shape)}" if first is not None else ""
    return f"tensors of no model and no optimizer {byte_size(account.held.by_class['other'])}{largest}"


def _by_phase(account: PeakAccount) -> Table:
    names = [name for name in CLASSES if any(name in peak.by_class for peak in account.phases.values())]
    return Table(
        ("phase", "peak", *(CLASSES[name] for name in names)),
        tuple(
            (
                phase,
                byte_size(peak.peak_bytes),
                *(byte_size(peak.by_class[name]) if name in peak.by_class else "" for name in names),
            )
            for phase, peak in sorted(account.phases.items(), key=lambda pair: -pair[1].peak_bytes)
        ),
        caption="The peak of each phase",
        figures=tuple(range(1, len(names) + 2)),
    )


def _lines(title: str, lines: Sequence[HeldLine]) -> Table:
    return Table(
        ("line", "function", "bytes", "tensors", "largest made by"),
        tuple(
            (
                f"{'backward of ' if one.in_backward else ''}{source_line(one.path, one.line)}",
                one.function,
                byte_size(one.held_bytes),
                str(one.num),
                f"{one.operator}{f' {one.dtype} {_shape(one.shape)}' if one.shape else ''}",
            )
            for one in lines
        ),
        caption=title,
        figures=(2, 3),
    )


def _modules(account: PeakAccount) -> list[tuple[str, int]]:
    return list(account.held.by_module.items())


def _shape(shape: Sequence[int] | None) -> str:
    return "x".join(map(str, shape or ()))
