"""How it was measured, on what, and what was not measured."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from hotloop.model.machine import CheckStatus, EnvironmentCheck
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.model.quantities import byte_size, counted, duration, percent
from hotloop.model.tuning import Contention
from hotloop.report.content.content import ReportContent
from hotloop.report.content.figures import NOT_MEASURED
from hotloop.report.content.monitor_words import monitor_amount, monitor_name
from hotloop.report.document import Block, Details, Facts, Section, Table
from hotloop.report.sections.tuned import smallest_difference

_SPEED_PACKAGES = (
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "numpy",
    "lightning",
    "pytorch-lightning",
    "transformers",
    "accelerate",
    "datasets",
    "timm",
    "pillow",
)


def method(content: ReportContent) -> Section:
    """Return how it was measured."""
    blocks: list[Block] = [Facts(tuple(_rows(content)))]
    if content.observation is not None:
        blocks += _monitors(content.observation)
    if content.origin is not None and content.origin.checks:
        blocks.append(_checks(content.origin.checks))
    if content.origin is not None and content.origin.packages:
        rows = tuple(content.origin.packages.items())
        blocks.append(
            Details(f"All {counted(len(rows), 'installed package')}", (Table(("package", "version"), rows),))
        )
    return Section(anchor="method", title="How it was measured", lead="", blocks=tuple(blocks))


def _checks(checks: Sequence[EnvironmentCheck]) -> Block:
    """What could have spoiled it, as it was before the measurement."""
    loud = [one for one in checks if one.status is CheckStatus.WARNING]
    said = f"{counted(len(loud), 'warning')}: {', '.join(one.name for one in loud)}" if loud else "no warning"
    order = list(CheckStatus)
    rows = tuple(
        (one.name, one.status.value, one.seen, one.why)
        for one in sorted(checks, key=lambda one: (one not in loud, order.index(one.status)))
    )
    return Details(
        f"The environment before the measurement: {said}",
        (Table(("check", "verdict", "seen", "why it matters"), rows),),
        badge="warning" if loud else "",
    )


def coverage(content: ReportContent) -> Section:
    """Return what was not measured."""
    if not content.missing:
        return Section(
            anchor="coverage", title="What was not measured", lead="Everything was measured.", blocks=()
        )
    rows = tuple((gap.what, gap.why) for gap in content.missing)
    return Section(
        anchor="coverage",
        title="What was not measured",
        lead="Not measured means unknown, not zero.",
        blocks=(Table(("what", "why"), rows),),
    )


def _rows(content: ReportContent) -> Iterator[tuple[str, str]]:
    seen, tuning = content.observation, content.tuning
    if tuning is not None:
        yield "speed-up", tuning.confirmation
        least, floor = (
            NOT_MEASURED if each is None else percent(each)
            for each in (smallest_difference(tuning), tuning.floor)
        )
        yield "smallest measurable difference", f"{least}; of the program against itself {floor}"
        yield "other processes meanwhile", _contention(tuning.contention)
        yield (
            "session",
            f"{content.session}, {duration(tuning.wall_s)}{', interrupted' if tuning.interrupted else ''}",
        )
    else:
        yield "session", content.session
    if seen is not None:
        yield "command", shlex.join(seen.command)
        yield "clock", f"phases are timed by the {seen.clock}'s clock"
        if seen.foreign_share is not None:
            yield (
                "other processes",
                f"used {percent(seen.foreign_share)} of the CPU while it was observed",
            )
        yield from _machine(seen.machine)
        program = seen.program
        yield (
            "torch, Python",
            f"{program.torch_version or NOT_MEASURED}, {program.python_version or NOT_MEASURED}",
        )
        if program.environment:
            yield (
                "environment",
                " ".join(f"{key}={value}" for key, value in sorted(program.environment.items())),
            )
    yield from _origin(content.origin)


def _contention(load: Contention) -> str:
    most = (
        f"; other processes used up to {percent(load.max_foreign_share)} of the CPU"
        if load.max_foreign_share is not None
        else ""
    )
    void = f"{load.num_void} of {counted(load.num_blocks, 'block')} disturbed and repeated"
    return f"{void}, {load.num_noisy} disturbed blocks kept{most}"


def _machine(machine: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if not machine:
        return
    yield "processor", f"{machine.get('cpu_model', 'unknown')}, {machine.get('num_cores', '?')} cores"
    memory = machine.get("memory_bytes")
    if isinstance(memory, int):
        yield "memory", byte_size(memory)
    devices = [str(one.get("name")) for one in machine.get("accelerators", ()) if isinstance(one, dict)]
    yield "accelerators", ", ".join(devices) or "none"
    if "os" in machine:
        yield "system", str(machine["os"])


def _origin(origin: Origin | None) -> Iterator[tuple[str, str]]:
    if origin is None:
        return
    yield "when", origin.began
    yield "folder", origin.folder
    yield "hotloop", origin.hotloop_version
    if origin.code is not None:
        changed = (
            f", {counted(len(origin.code.changed), 'file')} changed since" if origin.code.changed else ""
        )
        yield (
            "code",
            f"{origin.code.commit[:12]}{f' on {origin.code.branch}' if origin.code.branch else ''}{changed}",
        )
    known = [f"{name} {origin.packages[name]}" for name in _SPEED_PACKAGES if name in origin.packages]
    if known:
        yield "packages", ", ".join(known)


def _monitors(seen: Observation) -> Iterator[Block]:
    if seen.monitors is None:
        return
    rows = tuple(
        (monitor_name(name), *(monitor_amount(name, each) for each in (one.mean, one.p95, one.max)))
        for name, one in sorted(seen.monitors.metrics.items())
    )
    yield Details(
        f"What the machine did meanwhile: {counted(len(rows), 'monitor')}",
        (
            Table(
                ("monitor", "mean", "p95", "largest"),
                rows,
                caption="Over the steady steps",
                figures=(1, 2, 3),
            ),
        ),
    )
