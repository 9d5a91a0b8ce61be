"""What holds the memory now, by class and by line: the storages that were followed, and a walk over all tensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hotloop.probe.instruments.operation_stacks import LOADING
from hotloop.probe.instruments.storage_classes import OTHER, StorageClasses
from hotloop.probe.memory_failure.live_storages import BACKWARD, FORWARD, LiveStorages, Record

NAMES = ("parameters", "gradients", "optimizer_state", "buffers", "other")
"""By the numbers of `storage_classes`."""
MOST_NAMED = 12


def walked_tensors() -> list[dict[str, Any]]:
    """Return the memory of each tensor that Python can reach, with its class by number."""
    classes = StorageClasses()
    rows = classes.all_tensors()
    classes.let_go()
    return rows


def held_now(
    device: str,
    storages: LiveStorages | None,
    rows: Iterable[Mapping[str, Any]],
    kept: Collection[int] = (),
) -> dict[str, Any]:
    """Return bytes by class, the lines that hold most, and the other tensors.

    Args:
        device: whose memory.
        storages: what was followed; None: nothing was, and lines are not known.
        rows: of all tensors.
        kept: addresses of the tensors that containers of the program hold, and that are in no batch.
    """
    walked = {row["address"]: row for row in rows if row["device"] == device}
    followed = {} if storages is None else {
        address: record for address, record in list(storages.live.items()) if record.device == device
    }  # fmt: skip
    turn = storages.turn - storages.passes_of_a_step if storages is not None else 0
    sums: dict[str, int] = defaultdict(int)
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    others = []
    for address in {**walked, **followed}:
        row, record = walked.get(address), followed.get(address)
        name = _class(row, record, turn, kept=address in kept)
        num_bytes = row["bytes"] if row is not None else record.num_bytes if record is not None else 0
        sums[name] += num_bytes
        if record is not None and storages is not None:
            _add_line(lines, storages, record, name, num_bytes)
        if row is not None and name == "other":
            others.append(_other(row))
    return {
        "by_class": dict(sorted(sums.items(), key=lambda pair: -pair[1])),
        "lines": sorted(lines.values(), key=lambda line: -line["held_bytes"])[:MOST_NAMED],
        "others": sorted(others, key=lambda row: -int(row["held_bytes"]))[:MOST_NAMED],
    }


def _class(row: Mapping[str, Any] | None, record: Record | None, turn: int, *, kept: bool) -> str:
    """Return the class of a storage; what was made before a turn is of an earlier step."""
    if row is not None and row["class"] != OTHER:
        return NAMES[row["class"]]
    if record is None:
        return "other"
    earlier = record.turn < turn
    if row is not None and not row["graph"] and (kept or earlier):
        return "other"  # what Python holds without a graph is data that the program keeps
    if record.phase == FORWARD and earlier:
        return "earlier_steps"
    if record.phase == FORWARD:
        return "activations" if record.in_graph else "inputs"
    return "inputs" if record.phase == LOADING else "temporaries"


def _add_line(
    lines: dict[tuple[Any, ...], dict[str, Any]],
    storages: LiveStorages,
    record: Record,
    name: str,
    num_bytes: int,
) -> None:
    stack, _, _ = storages.stacks.stacks()[record.stack]
    if not stack:
        return
    at = stack[-1]
    in_backward = record.phase == BACKWARD
    line = lines.setdefault(
        (at.path, at.line, name),
        {
            "path": at.path, "line": at.line, "function": at.function, "operator": record.operator, "name": name,
            "held_bytes": 0, "num": 0, "largest": 0, "shape": None, "dtype": "", "in_backward": in_backward,
        },
    )  # fmt: skip
    line["held_bytes"] += num_bytes
    line["num"] += 1
    if num_bytes > line["largest"]:
        line.update(largest=num_bytes, operator=record.operator, shape=list(record.shape), dtype=record.dtype)


def _other(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "held_bytes": row["bytes"],
        "shape": row.get("shape", []),
        "dtype": row.get("dtype", "").removeprefix("torch."),
        "keeps_graph": row["graph"],
    }
