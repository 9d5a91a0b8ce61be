"""From the timed parts of batches to where a sample's time goes."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hotloop.model.deep import (
    ConstantCall,
    CopiedContainer,
    GrowingContainer,
    Loading,
    LoadingPart,
    OpenedFolder,
)
from hotloop.observe.decode.instrument_files import DeepFile, read_deep
from hotloop.observe.decode.spans import NS, Timeline

WORKER = "worker_loading"
Key = tuple[str, str, str | None, int | None]


def read_loading(folder: Path, file: DeepFile, lead: Timeline) -> Loading | None:  # noqa: ARG001 - a reader
    """Return what the leading process's workers, or it itself, do for a sample; None: no batch was made."""
    workers = [
        one for one in read_deep(folder, WORKER) if one.value["parent"] == file.pid and one.value["batches"]
    ]
    makers = workers or [file]
    samples = sum(one.value["samples"] for one in makers)
    if not samples:
        return None
    used = sum(one.value["used_bytes"] for one in makers)
    spent = _added([*makers, *([file] if workers else [])])
    whole = sum(times[1] for times in spent.values())
    fixed = _before_chance(spent)
    parts = [_part(key, times, samples, whole, repeats=key in fixed) for key, times in spent.items()]
    reads = [one.value["read"] for one in makers]
    told = None not in reads
    private = [one.value["private_bytes"] for one in workers if one.value["private_bytes"] is not None]
    return Loading(
        process="worker" if workers else "train",
        num_processes=_at_once(makers),
        window_s=max(one.window_s for one in makers),
        num_batches=sum(one.value["batches"] for one in makers),
        num_samples=samples,
        sample_s=whole * NS / samples,
        parts=tuple(sorted(parts, key=lambda part: -part.share)),
        used_bytes_per_sample=used / samples if used else None,
        read_bytes_per_sample=sum(read[0] for read in reads) / samples if told else None,
        reads_per_sample=sum(read[1] for read in reads) / samples if told else None,
        private_bytes_per_worker=sum(private) / len(private) if private else None,
        copied=_copied(workers),
        growing=_growing(workers),
        **_padding(makers),
        folder=_folder(makers, samples),
        rows_in_memory=all(0 < one.value["of_rows"] >= one.value["batches"] for one in makers),
        constant=_constant(makers),
    )


def _copied(workers: Sequence[DeepFile]) -> CopiedContainer | None:
    """Return the largest container of Python objects that a worker copies."""
    rows = [found["copied"] for one in workers if (found := one.value.get("containers"))]
    known = msgspec.convert([row for row in rows if row is not None], list[CopiedContainer])
    return max(known, key=lambda one: one.copied_bytes, default=None)


def _growing(workers: Sequence[DeepFile]) -> tuple[GrowingContainer, ...]:
    """Return the containers that grow in workers, as one worker tells of each."""
    rows = [row for one in workers if (found := one.value.get("containers")) for row in found["growing"]]
    known = {(one.path, one.function, one.name): one for one in msgspec.convert(rows, list[GrowingContainer])}
    return tuple(sorted(known.values(), key=lambda one: -one.bytes_per_step))


def _constant(files: Sequence[DeepFile]) -> tuple[ConstantCall, ...]:
    """Return what gave the same for every sample in every process that looked for it."""
    found: dict[tuple[str, int, str], list[dict[str, Any]]] = defaultdict(list)
    for one in files:
        for row in one.value["constant"]:
            found[row["path"], row["line"], row["called"]].append(row)
    calls = [
        ConstantCall(
            path=path,
            line=line,
            function=rows[0]["function"],
            called=called,
            num_per_sample=sum(row["num"] for row in rows) / max(1, sum(row["samples"] for row in rows)),
            share=sum(row["share"] for row in rows) / len(rows),
        )
        for (path, line, called), rows in found.items()
    ]
    return tuple(sorted(calls, key=lambda one: -one.share))


def _added(files: Sequence[DeepFile]) -> dict[Key, list[Any]]:
    """Return count, nanoseconds and randomness by part, of all processes together."""
    spent: dict[Key, list[Any]] = defaultdict(lambda: [0, 0, None])
    for file in files:
        for row in file.value["parts"]:
            entry = spent[row["kind"], row["name"], row["path"], row["line"]]
            entry[0] += row["count"]
            entry[1] += row["own_ns"]
            if row["random"] is not None:
                entry[2] = bool(entry[2]) or row["random"]
    return spent


def _padding(files: Sequence[DeepFile]) -> dict[str, float]:
    length, to_longest, beyond = (sum(one.value["padding"][at] for one in files) for at in (0, 1, 2))
    whole = length + to_longest + beyond
    return {"padding": to_longest / whole, "padding_beyond": beyond / whole} if whole else {}


def _folder(files: Sequence[DeepFile], samples: int) -> OpenedFolder | None:
    told = [one.value["folder"] for one in files if one.value["folder"] is not None]
    if not told:
        return None
    path = os.path.commonpath([each["path"] for each in told])
    same = [each["bytes"] for each in told if each["path"] == path]
    return OpenedFolder(
        path=path,
        files_per_sample=sum(each["opened"] for each in told) / samples,
        bytes=same[0] if same else None,
    )


def _at_once(files: Sequence[DeepFile]) -> int:
    """Return how many processes worked at the same time; workers may be started anew in every epoch."""
    return max(sum(one.begin_ns <= other.begin_ns < one.end_ns for one in files) for other in files)


def _before_chance(spent: Mapping[Key, Sequence[Any]]) -> set[Key]:
    """Return what gives the same in every epoch; parts come in the order in which they were first begun."""
    fixed: set[Key] = set()
    chance = False
    for key, (_, _, random) in spent.items():
        if key[0] == "transform":
            chance = chance or random is not False
        if key[0] in {"open", "read", "decode"} or (key[0] == "transform" and not chance):
            fixed.add(key)
    return fixed


def _part(key: Key, spent: Sequence[Any], samples: int, whole: int, *, repeats: bool) -> LoadingPart:
    kind, name, path, line = key
    count, nanoseconds, random = spent
    return LoadingPart(
        kind=kind,
        name=name,
        path=path,
        line=line,
        count_per_sample=count / samples,
        time_per_sample_s=nanoseconds * NS / samples,
        share=nanoseconds / max(1, whole),
        random=random,
        repeats=repeats,
    )
