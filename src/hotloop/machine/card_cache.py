"""Keeps the machine card from one day to the next, as long as the machine and torch are the same."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from hotloop.machine.card import Progress, measure_card, measure_disk
from hotloop.machine.identity import fingerprint, identity
from hotloop.machine.mounts import mount_of
from hotloop.machine.torch_process import torch_version
from hotloop.model.machine import CARD_SCHEMA, MachineCard


def cache_folder() -> Path:
    """Return where cards are kept: `$XDG_CACHE_HOME/hotloop`, else `~/.cache/hotloop`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "hotloop"


def machine_card(
    folder: Path, *, fresh: bool = False, cache: Path | None = None, progress: Progress = lambda _: None
) -> tuple[MachineCard, bool]:
    """Return this machine's card, and whether it was kept from an earlier day.

    Args:
        folder: whose disk is meant.
        fresh: measure again even where there is a card.
        cache: where cards are kept, `cache_folder()` unless told.
        progress: told what is measured next.
    """
    path = (cache or cache_folder()) / f"machine-{fingerprint(identity())}.json"
    kept = None if fresh else load_card(path)
    if kept is None or kept.torch_version != torch_version():
        card = measure_card(folder, progress)
        save_card(path, card)
        return card, False
    if kept.disk is None or kept.disk.mount != mount_of(folder).point:
        progress("disk")
        kept = _with_disk(kept, folder)
        save_card(path, kept)
    return kept, True


def load_card(path: Path) -> MachineCard | None:
    """Return a kept card; None where there is none, or one of another version of hotloop."""
    try:
        card = msgspec.json.decode(path.read_bytes(), type=MachineCard)
    except (OSError, msgspec.DecodeError):
        return None
    return card if card.schema == CARD_SCHEMA else None


def save_card(path: Path, card: MachineCard) -> None:
    """Keep a card; a folder that cannot be written only means that the next call measures again."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(card)))
        os.replace(partial, path)
    except OSError:
        with suppress(OSError):
            partial.unlink()


def _with_disk(card: MachineCard, folder: Path) -> MachineCard:
    disk, missing = measure_disk(folder)
    others = tuple(one for one in card.not_measured if one.what != "disk")
    return msgspec.structs.replace(card, disk=disk, not_measured=(*missing, *others))
