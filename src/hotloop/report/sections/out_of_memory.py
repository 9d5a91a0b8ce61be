"""The program ran out of memory: what asked, what held the rest, what would make it fit, what to type."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from hotloop.model.memory_account import CLASSES, HeldLine
from hotloop.model.observation import Observation
from hotloop.model.out_of_memory import Holder, OutOfMemory, Remedy
from hotloop.model.quantities import byte_size, counted, percent
from hotloop.report.content.ran_out import ran_out_told
from hotloop.report.content.source_lines import source_line
from hotloop.report.document import Block, Document, Facts, Note, Section, Table

MAX_LINES = 5
_FITS = {True: "may be enough", False: "not enough alone", None: "not known"}


def out_of_memory(seen: Observation) -> Section | None:
    """Return the section; None: the program did not run out of memory."""
    found = seen.out_of_memory
    if found is None:
        return None
    return Section(
        anchor="out-of-memory",
        title="Out of memory",
        lead=ran_out_told(found),
        blocks=tuple(_blocks(found, seen.command)),
    )


def out_of_memory_alone(seen: Observation) -> Document | None:
    """Return the section as a document of its own; None: the program did not run out of memory."""
    section = out_of_memory(seen)
    if section is None:
        return None
    return Document(
        title="", subtitle="", verdict=section.lead, good=None, tiles=(), footer="",
        sections=(Section(anchor="", title="", blocks=section.blocks),),
    )  # fmt: skip


def _blocks(found: OutOfMemory, command: tuple[str, ...]) -> Iterator[Block]:
    yield Facts(tuple(_facts(found)))
    if found.by_class:
        total = found.held_bytes or 1
        yield Table(
            ("class", "held", "share"),
            tuple(
                (CLASSES.get(name, name), byte_size(size), percent(size / total))
                for name, size in found.by_class.items()
            ),
            caption=f"What held the memory: {byte_size(found.held_bytes)} of tensors on {found.device}",
            figures=(1, 2),
            bars=tuple(float(size) for size in found.by_class.values()),
        )
    if found.lines:
        yield Table(
            ("line", "made by", "held", "tensors"),
            tuple(_line(one) for one in found.lines[:MAX_LINES]),
            caption="The lines whose tensors held most",
            figures=(2, 3),
        )
    if found.holders:
        yield Table(
            ("name", "where", "kind", "held"),
            tuple(_holder(one) for one in found.holders[:MAX_LINES]),
            caption="What names of the program hold, beside models and optimizers",
            figures=(3,),
        )
    if found.remedies:
        yield Table(
            ("change", "class", "saves at most", "fits then"),
            tuple(_remedy(one) for one in found.remedies),
            caption="What takes less, exact changes first",
            figures=(2,),
        )
    else:
        yield Note(_without_change(found))
    yield Facts(tuple(_next(found, command)))
    yield Facts((("method", found.method),))


def _without_change(found: OutOfMemory) -> str:
    asked, limit, free = found.asked_bytes, found.limit_bytes, found.free_bytes
    if asked is not None and limit is not None and free is not None and asked > free >= limit / 2:
        return (
            "What was asked for at once is most of what there is: make it in parts, map it from a file "
            "(numpy.load with mmap_mode), or give it a smaller type."
        )
    whole = found.resident_bytes if found.device == "cpu" else found.allocated_bytes
    if whole and found.held_bytes >= whole / 2:
        largest = max(found.by_class, key=lambda name: found.by_class[name])
        return f"No change is known for what held the memory: most of it is {CLASSES.get(largest, largest)}."
    return "No change is known for what held the memory: it is not in tensors that could be found."


def _facts(found: OutOfMemory) -> Iterator[tuple[str, str]]:
    if found.error:
        yield "error", " ".join(found.error.split())[:300]
    if found.asked_bytes is not None:
        by = f" by {found.at.operator}" if found.at is not None and found.at.operator else ""
        yield "asked for", f"{byte_size(found.asked_bytes)}{by}"
    if found.limit is not None and found.limit_bytes is not None and found.free_bytes is not None:
        free = byte_size(found.free_bytes)
        yield "limit", f"{found.limit}: {byte_size(found.limit_bytes)}, of which {free} were free"
    if found.reserved_bytes is not None:
        slack = found.reserved_bytes - (found.allocated_bytes or found.held_bytes)
        yield (
            "reserved",
            f"{byte_size(found.reserved_bytes)} by torch's allocator, {byte_size(max(0, slack))} unused",
        )
    if found.resident_bytes is not None:
        beside = found.resident_bytes - (found.held_bytes if found.device == "cpu" else 0)
        yield (
            "process",
            f"{byte_size(found.resident_bytes)} resident, {byte_size(max(0, beside))} of it no tensors: Python's "
            "objects, arrays, libraries",
        )
    if found.user_line:
        yield "called from", found.user_line
    if found.num_steps:
        yield "after", counted(found.num_steps, "step")
    if found.batch:
        yield "batch", found.batch


def _line(one: HeldLine) -> tuple[str, ...]:
    shape = f" {one.dtype} {'x'.join(map(str, one.shape))}" if one.shape else ""
    place = source_line(one.path, one.line)
    backward = "backward under " if one.in_backward else ""
    return f"{backward}{place}", f"{one.operator}{shape}", byte_size(one.held_bytes), str(one.num)


def _holder(one: Holder) -> tuple[str, ...]:
    entries = f" of {one.num:,}" if one.num is not None else ""
    graph = ", with their graphs" if one.keeps_graph else ""
    where = source_line(one.path, one.line) if one.line is not None else one.function
    return one.name, where, f"{one.kind}{entries}{graph}", byte_size(one.held_bytes)


def _remedy(one: Remedy) -> tuple[str, ...]:
    saved = "not known" if one.saved_bytes is None else byte_size(one.saved_bytes)
    return f"{one.change}: {one.basis}", one.numerics.value, saved, _FITS[one.enough]


def _next(found: OutOfMemory, command: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if found.snapshot is not None:
        yield "its history", f"{found.snapshot}, for pytorch.org/memory_viz"
    words = shlex.join(command)
    yield "what fits where", f"hotloop memory plan --device {_device(found)} {words}"
    named = next((each.optimization for each in found.remedies if each.optimization), None)
    if named is not None:
        yield "the manual of a change", f"hotloop explain {named}"


def _device(found: OutOfMemory) -> str:
    """Return what a plan is made for: a device of the size that there was."""
    if found.limit_bytes is None:
        return "24GB"
    return f"{max(1, round(found.limit_bytes / 1e9))}GB"
