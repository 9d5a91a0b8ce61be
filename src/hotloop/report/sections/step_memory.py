"""Memory over a step, by phase and by module, before and after."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from hotloop.model.quantities import byte_size, counted
from hotloop.model.step_memory import ModuleMemory, StepMemory
from hotloop.report.document import Block, Chart, Note, Table

MAX_MODULES = 12
MIB = 1 << 20
THINNED = 800
"""Points from which a curve was thinned out when it was read."""
BEFORE, AFTER = "as it was", "with the plan"
PARTS = ("parameters", "gradients", "optimizer", "buffers", "activations")
Sides = Sequence[tuple[str, StepMemory]]
"""What each is called, the program as it was first."""


class _Group(msgspec.Struct):
    """Modules that differ in a number of their path alone, such as equal blocks of a network."""

    name: str
    cls: str = ""
    num: int = 0
    parts: dict[str, int] = {}

    @property
    def label(self) -> str:
        like = f" and {self.num - 1} like it" if self.num > 1 else ""
        return f"{self.name} ({self.cls}){like}"

    @property
    def total(self) -> int:
        return sum(self.parts.values())


def step_memory(before: StepMemory | None, after: StepMemory | None) -> Iterator[Block]:
    """Yield the charts; nothing where nothing was measured."""
    sides = [(name, one) for name, one in ((BEFORE, before), (AFTER, after)) if one is not None]
    if not sides:
        return
    yield _over_time(sides)
    yield _by_phase(sides)
    yield from _by_module(sides)


def _over_time(sides: Sides) -> Chart:
    first = sides[0][1]
    steps = counted(first.num_steps, "step")
    what = (
        f"All that tensors take on {first.device}"
        if first.absolute
        else "What tensors take beyond the lowest moment: parameters and what else was there before are not in it"
    )
    peaks = "; ".join(
        f"{f'{name}: ' if len(sides) > 1 else ''}at most {byte_size(one.peak_bytes)}" for name, one in sides
    )
    return Chart(
        kind="lines",
        title=f"Memory over {steps}{', before and after' if len(sides) > 1 else ''}",
        summary=f"{what}, by torch's own account: {peaks}.",
        data={
            "unit": "MiB",
            "scale": "ms",
            "axis": "time within these steps" + (", each side its own" if len(sides) > 1 else ""),
            "lines": [
                {
                    "name": name,
                    "x": [round(time * 1e3, 4) for time in one.times_s],
                    "y": [round(held / MIB, 3) for held in one.bytes],
                }
                for name, one in sides
            ],
            "marks": [round(end * 1e3, 4) for end in first.steps_s],
        },
        rule="The lowest and the highest of each stretch are drawn, so no peak is lost."
        if any(len(one.times_s) > THINNED for _, one in sides)
        else "",
    )


def _by_phase(sides: Sides) -> Table:
    names = dict.fromkeys(phase for _, one in sides for phase in one.phases)
    header = [
        f"{what}, {name}" if len(sides) > 1 else what for name, _ in sides for what in ("highest", "change")
    ]
    return Table(
        ("phase", *header),
        tuple((phase, *(cell for _, one in sides for cell in _phase_cells(one, phase))) for phase in names),
        caption="By phase: the most that tensors take while it lasts, and what it leaves allocated or gives back "
        "in a step",
        figures=tuple(range(1, len(header) + 1)),
    )


def _phase_cells(one: StepMemory, phase: str) -> tuple[str, str]:
    found = one.phases.get(phase)
    if found is None:
        return "none seen", "none seen"
    sign = "-" if found.change_bytes < 0 else "+" if found.change_bytes else ""
    return byte_size(found.peak_bytes), f"{sign}{byte_size(abs(found.change_bytes))}"


def _by_module(sides: Sides) -> Iterator[Block]:
    grouped = [(name, _groups(one.modules)) for name, one in sides if one.modules]
    if not grouped:
        if any(one.modules is None for _, one in sides):
            yield Note(
                "Modules are not told apart: the program compiles, and hooks on its modules would have it compiled "
                "anew."
            )
        return
    names = list(grouped[0][1])[:MAX_MODULES]
    rows = [
        (f"{name}{f', {side}' if len(grouped) > 1 else ''}", groups[name].parts)
        for name in names
        for side, groups in grouped
        if name in groups
    ]
    largest = next(iter(grouped[0][1].values()))
    yield Chart(
        kind="stacks",
        title=f"Memory by module{', before and after' if len(grouped) > 1 else ''}",
        summary=f"What modules hold themselves; equal ones are put together. {largest.label} holds most: "
        f"{byte_size(largest.total)}. Activations are what a forward leaves to the backward.",
        data={
            "parts": list(PARTS),
            "rows": [
                {"name": name, "parts": [round(parts.get(part, 0) / MIB, 4) for part in PARTS]}
                for name, parts in rows
            ],
        },
        table=Table(
            ("modules", *PARTS),
            tuple((name, *(byte_size(parts.get(part, 0)) for part in PARTS)) for name, parts in rows),
            figures=tuple(range(1, len(PARTS) + 1)),
        ),
        rule=f"The {len(names)} largest of {counted(len(grouped[0][1]), 'group')} are drawn."
        if len(names) < len(grouped[0][1])
        else "",
    )


def _groups(modules: Sequence[ModuleMemory]) -> dict[str, _Group]:
    """Return the groups by what they are called, the largest first."""
    found: dict[tuple[str, str, int], _Group] = {}
    for module in modules:
        pattern = re.sub(r"(?<![^.])\d+(?![^.])", "*", module.path)
        group = found.setdefault((pattern, module.cls, module.parameter_bytes), _Group(name=module.path))
        group.num += 1
        group.cls = module.cls
        for part, size in zip(PARTS, _sizes(module), strict=True):
            group.parts[part] = group.parts.get(part, 0) + size
    ordered = sorted(found.values(), key=lambda group: -group.total)
    return {group.label: group for group in ordered}


def _sizes(module: ModuleMemory) -> tuple[int, int, int, int, int]:
    return (
        module.parameter_bytes,
        module.gradient_bytes,
        module.optimizer_bytes,
        module.buffer_bytes,
        module.activation_bytes or 0,
    )
