"""Whether a run ended for want of memory, and a run that is made to see what held it."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from hotloop.launch.environment import probed, quiet
from hotloop.launch.isolation.decide import Isolation, guard_orders
from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.launch.process import Run, start
from hotloop.model.errors import HotloopError
from hotloop.model.memory_account import HeldLine, HeldTensor
from hotloop.model.out_of_memory import Holder, OutOfMemory
from hotloop.model.quantities import byte_size
from hotloop.observe.decode.spans import Size, Timeline
from hotloop.observe.profile.container_line import growing_line, making_line
from hotloop.observe.profile.memory_remedies import HeldMemory, remedies
from hotloop.probe.control.control_page import ControlPage
from hotloop.probe.memory_failure.words import STEM, says_so
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record.viewer_snapshot import snapshot_path
from hotloop.store.session import FOLDER, session_folder

BELOW = 0.9
"""Of the size at which the kernel killed it: at so much the further run ends itself."""
LONGEST_S = 120.0
"""A program that failed later is not run again: the user would wait as long once more."""
PATIENCE, MOST_S = 5.0, 60.0
"""Times what it took to fail, for a run that is followed, and seconds more."""
POLL_S = 0.1
MIN_NAMED_BYTES = 1 << 20
"""Of a container or an array: what holds less is no matter where memory ends."""
FOLLOWED = (
    "the program was run once more, each storage followed from the first one on, with the line that made it"
)
WALKED = "a walk over the tensors that Python could reach when the program ended; what graphs keep is not among them"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes:
        folder: the probe's.
        code: exit code.
        lived_s: how long it ran.
        largest_bytes: the largest resident size that was seen; None: none was.
        num_kills: of the kernel, for want of memory, while it ran; None: it does not tell.
        log_end: the last lines of its output; empty: they went to the user's terminal.
        lead: the records of the process that trained; None: none did.
    """

    folder: Path
    code: int
    lived_s: float
    largest_bytes: int | None
    num_kills: int | None
    lead: Timeline | None
    log_end: str = ""


def ran_out(failure: Failure) -> bool:
    """Whether the program ended for want of memory.

    It, or a thread of it, ended with an error that says so, or failed and had not trained since it caught one; or the
    kernel counted one more process that it killed, whatever the program, a launcher or a shell made of that; or, where
    no process told, the end of the log says so.
    """
    told = _all_told(failure.folder)
    if any(value["died"] or (failure.code and not value["went_on"]) for value in told):
        return True
    return bool(failure.code) and (bool(failure.num_kills) or (not told and says_so(failure.log_end)))


def caught(failure: Failure) -> str | None:
    """Say in a sentence that the program caught such errors; None: it did not."""
    told = _all_told(failure.folder)
    if not told or ran_out(failure):
        return None
    num = sum(value["num"] for value in told)
    first = told[0]
    at = " at {}:{}".format(*first["stack"][0][:2]) if first["stack"] else ""
    asked = f", which asked for {byte_size(first['asked_bytes'])}" if first["asked_bytes"] is not None else ""
    phase = f" in the phase {first['phase']}" if first["phase"] else ""
    times = "once" if num == 1 else f"at least {num} times, first"
    after = (
        "trained on"
        if any(value["went_on"] for value in told)
        else "went on, but completed no backward pass since"
    )
    return f"your program ran out of memory {times}{at}{asked}{phase}, caught the error, and {after}"


def _all_told(folder: Path) -> list[dict[str, Any]]:
    """Return what each process told."""
    values = [json.loads(path.read_text("ascii")) for path in sorted(folder.glob(f"{STEM}-*.json"))]
    return [{"died": False, "went_on": False, "killed": False, "num": 1, **value} for value in values]


def out_of_memory(
    failure: Failure,
    argv: Sequence[str],
    environment: Mapping[str, str],
    isolation: Isolation,
    left_s: float,
    say: Callable[[str], None],
) -> OutOfMemory:
    """Return what is known of it; run the program once more, followed, where it failed early enough.

    Args:
        failure: how it ended.
        argv: the command.
        environment: the user's.
        isolation: of the run that failed.
        left_s: before the deadline.
        say: told of the wait.
    """
    first = _read(failure.folder)
    found = None
    if failure.lived_s <= min(LONGEST_S, left_s):
        patience_s = min(PATIENCE * failure.lived_s + MOST_S, left_s)
        found = _followed(failure, argv, environment, isolation, patience_s, say)
    value = found or first or {}
    return _told(value, first, failure)


def as_it_ended(failure: Failure) -> OutOfMemory:
    """Return what the program itself told at its end: it is not run again."""
    first = _read(failure.folder)
    return _told(first or {}, first, failure)


def _followed(
    failure: Failure,
    argv: Sequence[str],
    environment: Mapping[str, str],
    isolation: Isolation,
    patience_s: float,
    say: Callable[[str], None],
) -> dict[str, Any] | None:
    """Return what a run told that was followed; None: it did not run out of memory in time."""
    scratch = new_scratch("memory")
    try:
        folder = scratch / "probe"
        folder.mkdir()
        page = ControlPage.create(folder / "control")
        told = scratch / "probe.json"
        said = any(failure.folder.glob(f"{STEM}-*.json"))
        ends_at = None if said or not failure.largest_bytes else round(BELOW * failure.largest_bytes)
        ProbeConfig(
            folder=str(folder), follow_memory=True, ends_at_bytes=ends_at, **guard_orders(isolation, scratch)
        ).save(told)
        run = start(
            argv, probed(quiet(environment, scratch), told), isolation, scratch, log=scratch / "output.log"
        )
        try:
            _wait(run, patience_s, say)
        finally:
            run.end()
            page.close()
        value = _read(folder)
        return None if value is None else {**value, "snapshot": _kept_snapshot(folder)}
    finally:
        remove(scratch)


def _kept_snapshot(folder: Path) -> str | None:
    """Keep the largest process's snapshot beside the sessions; return where, or None: there is none, or no room."""
    found = max(folder.glob(snapshot_path(folder, 0).name.replace("0", "*")), key=_size, default=None)
    if found is None:
        return None
    kept = Path(FOLDER) / f"out-of-memory-{time.strftime('%Y%m%d-%H%M%S')}.pickle"
    try:
        session_folder(Path.cwd())
        shutil.copyfile(found, kept)
    except (OSError, HotloopError):
        return None
    return str(kept)


def _size(path: Path) -> int:
    return path.stat().st_size


def _wait(run: Run, patience_s: float, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    while run.exit_code() is None and time.monotonic() - began < patience_s:
        say("your program ran out of memory: running it again to see what holds the memory")
        time.sleep(POLL_S)


def _read(folder: Path) -> dict[str, Any] | None:
    """Return what the largest process told, of those that ended with it before others; None: none did."""
    return max(
        _all_told(folder),
        key=lambda value: (
            value["died"],
            value.get("in_worker", False),
            sum(value["by_class"].values()),
        ),
        default=None,
    )


def _told(value: Mapping[str, Any], first: Mapping[str, Any] | None, failure: Failure) -> OutOfMemory:
    lines = tuple(_line(row) for row in value.get("lines", ()))
    others = msgspec.convert(value.get("others", ()), tuple[HeldTensor, ...])
    by_class = dict(value.get("by_class", {}))
    device = value.get("device", "cpu")
    host = value.get("host") or {}
    # The run that was not followed is the user's own: its figures go before, where they are known.
    room = value.get("room") or host
    asked, free = value.get("asked_bytes"), room.get("free_bytes")
    stack = value.get("stack") or (first or {}).get("stack") or []
    at = _at(stack, value, asked)
    rows = value.get("holders", ())
    holders = tuple(
        _holder(row) for row in rows if row["keeps_graph"] or row["held_bytes"] >= MIN_NAMED_BYTES
    )
    reserved, allocated = room.get("reserved_bytes"), room.get("allocated_bytes")
    held = HeldMemory(
        by_class=by_class,
        lines=lines,
        others=others,
        phase=value.get("phase"),
        device=device,
        asked=at,
        holders=holders,
        slack_bytes=reserved - allocated if reserved is not None and allocated is not None else 0,
        num_samples=(value.get("batch") or {}).get("samples"),
        on_rocm=bool(value.get("on_rocm")),
    )
    return OutOfMemory(
        error=value.get("error") or (first or {}).get("error") or "",
        killed=first is None or bool(first.get("killed")),
        device=device,
        asked_bytes=asked,
        at=at,
        user_line=_users(stack),
        phase=value.get("phase"),
        limit=room.get("limit"),
        limit_bytes=room.get("limit_bytes"),
        free_bytes=free,
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        resident_bytes=failure.largest_bytes if first is None else host.get("resident_bytes"),
        held_bytes=sum(by_class.values()),
        by_class=by_class,
        lines=lines,
        others=others,
        batch=_batch(
            failure.lead.sizes if failure.lead is not None else (),
            value.get("batch"),
            value.get("largest_shape"),
        ),
        followed=bool(value.get("tracked")),
        holders=holders,
        in_worker=bool(value.get("in_worker")),
        snapshot=value.get("snapshot"),
        remedies=remedies(held, _missing(asked, free)),
        method=FOLLOWED if value.get("tracked") else WALKED,
    )


def _missing(asked: int | None, free: int | None) -> tuple[int, int] | None:
    """Return what was missing, at least and at most.

    What the failing operation had taken for itself already is free again when one can look.
    """
    if asked is None:
        return None
    return (
        (max(0, asked - free), asked if asked <= free else asked - free) if free is not None else (0, asked)
    )


def _holder(row: Mapping[str, Any]) -> Holder:
    found = msgspec.convert({**row, "line": None}, Holder)
    return msgspec.structs.replace(found, line=growing_line(found) or making_line(found))


def _line(row: Mapping[str, Any]) -> HeldLine:
    return HeldLine(
        path=row["path"],
        line=row["line"],
        function=row["function"],
        operator=row["operator"],
        held_bytes=row["held_bytes"],
        num=row["num"],
        shape=tuple(row["shape"]) if row["shape"] else None,
        dtype=row["dtype"],
        in_backward=row["in_backward"],
    )


def _at(stack: Sequence[Sequence[Any]], value: Mapping[str, Any], asked: int | None) -> HeldLine | None:
    if not stack:
        return None
    path, line, function = stack[0]
    return HeldLine(
        path=path,
        line=line,
        function=function,
        operator=value.get("operator") or "",
        held_bytes=asked or 0,
        shape=tuple(value["shape"]) if value.get("shape") else None,
    )


def _users(stack: Sequence[Sequence[Any]]) -> str | None:
    """Return the innermost line outside installed packages, where it is not the innermost of all."""
    own = (at for at, (path, *_) in enumerate(stack) if path.startswith("/") and "site-packages" not in path)
    at = next(own, 0)
    return f"{stack[at][0]}:{stack[at][1]}" if at else None


def _batch(
    seen: Sequence[Size], last: Mapping[str, Any] | None = None, largest: Sequence[int] | None = None
) -> str:
    """Say how large the last batch was beside the earlier ones, where it is the largest.

    Args:
        seen: the batches of forwards that ended.
        last: samples, tokens and shape of the one that did not; None: not known.
        largest: shape of the largest batch that had another one; None: all had the same.
    """
    sizes = [each.tokens or each.samples for each in seen]
    if seen and last is not None:
        sizes.append(last["tokens" if seen[-1].tokens else "samples"])
    if len(sizes) < 2 or sizes[-1] <= max(sizes[:-1]):
        return _longer(last, largest)
    unit = "tokens" if seen[-1].tokens else "samples"
    return (
        f"the last batch has {sizes[-1]:,} {unit}, more than any before: at most {max(sizes[:-1]):,}, "
        f"{median(sizes[:-1]):,.0f} in the median"
    )


def _longer(last: Mapping[str, Any] | None, largest: Sequence[int] | None) -> str:
    """Say that as many samples are longer, or larger, than before."""
    if last is None or largest is None or math.prod(last["shape"]) <= math.prod(largest):
        return ""
    shape, before = (" x ".join(f"{size:,}" for size in one) for one in (last["shape"], largest))
    return f"the last batch is {shape}, more than any before of another shape: {before} at most"
