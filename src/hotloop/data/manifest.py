"""The files beside the shards: what is packed (`pack.json`), and which shards are finished (`shards.jsonl`)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hotloop.model.data import PACK_SCHEMA, PackPlan, ShardEntry
from hotloop.model.errors import HotloopError

_PLAN, _SHARDS = "pack.json", "shards.jsonl"


def read_plan(folder: Path) -> PackPlan | None:
    """Return what a folder of shards is; None: nothing was packed there.

    Raises:
        HotloopError: the file is not ours.
    """
    try:
        plan = msgspec.json.decode((folder / _PLAN).read_bytes(), type=PackPlan)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HotloopError(
            f"{folder / _PLAN} is damaged: {error}", "pack again into another folder"
        ) from error
    if plan.schema != PACK_SCHEMA:
        raise HotloopError(
            f"{folder} was packed by another version of hotloop (schema {plan.schema})", "pack again"
        )
    return plan


def packed_plan(folder: Path) -> PackPlan:
    """Return what a folder of shards is.

    Raises:
        HotloopError: nothing was packed there.
    """
    plan = read_plan(folder) if folder.is_dir() else None
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "is not there"
        raise HotloopError(f"{folder} {what}: a pack is a folder", "hotloop data pack SRC DEST makes one")
    if plan is None:
        raise HotloopError(f"{folder} holds no pack", "pack one: hotloop data pack SRC DEST")
    return plan


def write_plan(folder: Path, plan: PackPlan) -> None:
    """Keep it, whole or not at all."""
    partial = folder / f"{_PLAN}.partial"
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(plan)) + b"\n")
    sync(partial)
    partial.replace(folder / _PLAN)
    sync(folder)


def finished(folder: Path) -> tuple[ShardEntry, ...]:
    """Return the shards whose entry and file are there; a last line that a kill has torn is none."""
    try:
        lines = (folder / _SHARDS).read_bytes().split(b"\n")
    except FileNotFoundError:
        return ()
    try:
        entries = [msgspec.json.decode(line, type=ShardEntry) for line in lines[:-1]]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HotloopError(f"{folder / _SHARDS} is damaged: {error}", "remove it, and pack again") from error
    return tuple(entry for entry in entries if _size(folder / entry.file) == entry.num_bytes)


def keep(folder: Path, entries: Sequence[ShardEntry]) -> None:
    """Write the list anew, without what a kill has torn."""
    partial = folder / f"{_SHARDS}.partial"
    partial.write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))
    partial.replace(folder / _SHARDS)


def add(folder: Path, entry: ShardEntry) -> None:
    """Add a shard that is on disk."""
    with (folder / _SHARDS).open("ab") as file:
        file.write(msgspec.json.encode(entry) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def sha256_of(path: Path) -> str:
    """Return the digest of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def sync(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
