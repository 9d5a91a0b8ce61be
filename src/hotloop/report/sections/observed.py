"""An observation in short: the first screen of `observe`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hotloop.model.deep import Deep, HostSamples
from hotloop.model.observation import Observation, Phase, StepTime
from hotloop.model.quantities import byte_size, counted, duration, listed, shares
from hotloop.report.content.busy_machine import busy_machine
from hotloop.report.content.device_memory import device_memory
from hotloop.report.content.host_phases import host_phases, host_sentence
from hotloop.report.content.source_lines import source_line
from hotloop.report.content.tree_memory import tree_told
from hotloop.report.document import Block, Document, Facts, More, Note, Section, Table
from hotloop.report.sections.lines import SHORT, call_sites, host_lines, loading
from hotloop.report.sections.memory_account import peak_in_short, peak_tables
from hotloop.report.sections.monitors import monitors
from hotloop.report.sections.operators import efficiency, operators
from hotloop.report.sections.out_of_memory import out_of_memory
from hotloop.report.sections.run_table import run_table
from hotloop.report.sections.step_tables import batches, latency, phases_table, ranks_table, step_facts
from hotloop.stats.late_ranks import late_ranks, named, told
from hotloop.stats.quietness import is_too_busy

LEAST_LATE = 0.05
"""Of the step: below it a wait for other ranks is no warning of `diagnose` either."""
_SAYS = {
    Phase.DATA: "waiting for data",
    Phase.TRANSFER: "copying batches to the device",
    Phase.FORWARD: "the forward pass",
    Phase.BACKWARD: "the backward pass",
    Phase.COMMUNICATION: "waiting for other ranks",
    Phase.OPTIMIZER: "the optimizer",
    Phase.OTHER: "code between the phases (logging, metrics, your own)",
}


def observed(seen: Observation) -> Document:
    """Return where the time goes: the step by phase, the run by part, and the lines that take most of it."""
    step = seen.step
    host = seen.deep.host if seen.deep else None
    if step is not None:
        busy = " (as measured here)" if is_too_busy(seen.foreign_share) else ""
        verdict = f"{_verdict(seen, step)}{busy}."
        groups = [tuple(_of_step(seen, step)), tuple(_rest(seen))]
    elif host is not None:
        verdict = host_sentence(host)
        groups = [tuple(attached(host)), tuple(_lines(Deep(host=host))), tuple(_coverage(seen))]
    else:
        verdict = "No step was measured."
        groups = [tuple(_coverage(seen))]
    failed = out_of_memory(seen)
    return Document(
        title="",
        subtitle="",
        warnings=busy_machine(seen.foreign_share) if step is not None else (),
        verdict=verdict if failed is None else failed.lead,
        good=None,
        tiles=(),
        sections=(
            *((msgspec.structs.replace(failed, lead=""),) if failed is not None else ()),
            *(Section(anchor="", title="", blocks=blocks) for blocks in groups if blocks),
        ),
        footer="",
    )


def _verdict(seen: Observation, step: StepTime) -> str:
    """Return the largest part of the step, in a sentence."""
    largest = max(seen.phases, key=lambda phase: seen.phases[phase].share, default=None)
    if largest is None:
        return f"A step takes {duration(step.whole_s)}"
    what = f"{_SAYS[largest]}{_of_rank(seen)}"
    return f"A step takes {duration(step.whole_s)}; the largest part, {seen.phases[largest].share:.0%}, is {what}"


def _of_rank(seen: Observation) -> str:
    """Say whose step is shown, where there are several; the table of ranks has the others."""
    if len(seen.ranks) < 2:
        return ""
    shown = next((one for one in seen.ranks if one.phases == seen.phases), seen.ranks[0])
    return f" (rank {shown.rank})" if shown.rank is not None else f" (process {shown.pid})"


def _of_step(seen: Observation, step: StepTime) -> Iterator[Block]:
    yield step_facts(step, seen)
    yield phases_table(seen, step)
    if seen.inference is not None:
        yield from latency(seen.inference)
        yield from batches(seen.inference)
    if len(seen.ranks) > 1:
        yield ranks_table(seen.ranks)
        yield from _late(seen, step)
    yield run_table(seen.run)


def _late(seen: Observation, step: StepTime) -> Iterator[Block]:
    """Name the ranks that the others wait for, where that is worth a line."""
    late = late_ranks(seen.ranks)
    if late is not None and late.excess_s >= LEAST_LATE * step.whole_s:
        who, line = named(late), late.line
        where = f" Most of it is in {source_line(line.path, line.line, width=0)}." if line else ""
        yield Note(
            f"{who[0].upper()}{who[1:]} last to the collectives, and the others wait: {told(late)}.{where}"
        )


def _rest(seen: Observation) -> Iterator[Block]:
    held = list(_memory(seen))
    if held:
        yield Facts(tuple(("memory" * (not at), said) for at, said in enumerate(held)))
    account = seen.memory.account
    if account is not None:
        yield More(
            (peak_in_short(account, seen.memory), *peak_tables(account)),
            instead=(peak_in_short(account, seen.memory),),
        )
    if seen.efficiency is not None:
        yield efficiency(seen.efficiency)
    if seen.deep is not None:
        yield from _lines(seen.deep)
    more = list(_more(seen))
    hidden = [name for name, there in _tables(seen) if there]
    if more:
        yield More(tuple(more), instead=(Facts((("more", f"{listed(hidden)}: --verbose"),)),))
    yield from _coverage(seen)


def _memory(seen: Observation) -> Iterator[str]:
    """Yield the peak of the process that holds most, and of all processes together."""
    peak, together = seen.memory.peak_bytes, tree_told(seen.memory.tree)
    if peak is not None:
        yield f"peak {byte_size(peak)} ({seen.memory.method})"
    if together is not None:
        yield together
    yield from device_memory(seen.memory)


def _lines(deep: Deep) -> Iterator[Block]:
    """Yield the lines that take most of the host's time: a few, or all."""
    found = host_lines(deep.host) if deep.host is not None else None
    if found is not None and deep.host is not None:
        short = host_lines(deep.host, num=SHORT)
        yield More((found,), instead=(short,) if short else ())


def _tables(seen: Observation) -> Iterator[tuple[str, bool]]:
    deep = seen.deep
    yield "operators", deep is not None and deep.operators is not None
    yield "synchronizations and copies by line", deep is not None and deep.call_sites is not None
    yield "the cost of a sample", deep is not None and deep.loading is not None
    yield "the machine meanwhile", seen.monitors is not None


def _more(seen: Observation) -> Iterator[Block]:
    deep = seen.deep
    if deep is not None and deep.operators is not None:
        yield operators(deep.operators)
    if deep is not None and deep.call_sites is not None:
        sites = call_sites(deep.call_sites)
        yield sites or Note("No synchronization, copy or new tensor was seen in these steps.")
    if deep is not None and deep.loading is not None:
        yield from loading(deep.loading)
    if seen.monitors is not None:
        yield from monitors(seen.monitors)


def _coverage(seen: Observation) -> Iterator[Block]:
    together: dict[str, list[str]] = {}
    for gap in seen.coverage:
        together.setdefault(gap.why, []).append(gap.what.replace("_", " "))
    rows = tuple((", ".join(what), why) for why, what in together.items())
    if not rows:
        return
    whole = (Note("Not measured", "strong"), Facts(rows))
    if len(rows) == 1:
        yield Facts((("not measured", f"{rows[0][0]}: {rows[0][1]}"),))
    else:
        said = f"{', '.join(what for what, _ in rows)} ({counted(len(rows), 'reason')}: --verbose)"
        yield More(whole, instead=(Facts((("not measured", said),)),))


def attached(host: HostSamples) -> Iterator[Block]:
    """Yield the shares of the phases, of a process that was looked at from outside."""
    num = sum(sample.num for sample in host.samples if sample.process == "train")
    yield Note(f"{num:,} samples in {duration(host.window_s)}; the process was not stopped.")
    found = host_phases(host)
    if found:
        yield Table(
            ("phase", "share"),
            tuple(zip((phase.value for phase in found), shares(list(found.values())), strict=True)),
            figures=(1,),
            bars=tuple(found.values()),
            hues=tuple(phase.value for phase in found),
        )
