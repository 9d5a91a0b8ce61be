"""Keeps the machine card from one day to the next, as long as the machine and torch are the same."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from hotloop.machine.card.card import Progress, measure_card, measure_disk
from hotloop.machine.card.torch_process import torch_version
from hotloop.machine.host.identity import differences, fingerprint, identity
from hotloop.machine.host.mounts import mount_of
from hotloop.model.machine import CARD_SCHEMA, MachineCard, MachineIdentity
from hotloop.model.observation import Observation
from hotloop.stats.quietness import is_busy


def cache_folder() -> Path:
    """Return where cards are kept: `$XDG_CACHE_HOME/hotloop`, else `~/.cache/hotloop`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "hotloop"


def machine_card(
    folder: Path,
    *,
    fresh: bool = False,
    is_quiet: bool = False,
    cache: Path | None = None,
    progress: Progress = lambda _: None,
) -> tuple[MachineCard, bool]:
    """Return this machine's card, and whether it was kept from an earlier day.

    Args:
        folder: whose disk is meant.
        fresh: measure again even where there is a card.
        is_quiet: nobody else uses the machine now, so a card measured beside others is measured again.
        cache: where cards are kept, `cache_folder()` unless told.
        progress: told what is measured next.
    """
    path = _path(cache)
    kept = None if fresh else load_card(path)
    if kept is None or kept.torch_version != torch_version() or (is_quiet and is_noisy(kept)):
        card = measure_card(folder, progress)
        save_card(path, card)
        return card, False
    if kept.disk is None or kept.disk.mount != mount_of(folder).point:
        progress("disk")
        kept = _with_disk(kept, folder)
        save_card(path, kept)
    return kept, True


def kept_card(cache: Path | None = None) -> MachineCard | None:
    """Return the card that an earlier call kept for this machine and this torch, None where there is none.

    Nothing is measured: what only wants a peak rate to compare with asks here.
    """
    kept = load_card(_path(cache))
    return kept if kept is not None and kept.torch_version == torch_version() else None


def peak_flop_per_s(card: MachineCard, device: str, precision: str) -> float | None:
    """Return the fastest that a device ran in one precision, None where that was not measured on a quiet machine.

    The fastest repeat of matmul or convolution: a program's share of a peak that it beats would be absurd, and so is
    its share of a rate that other processes held down.
    """
    if is_noisy(card):
        return None
    rates = [
        rate.high
        for one in card.devices
        if one.device == device
        for kind in (one.matmul_flop_per_s, one.convolution_flop_per_s)
        if (rate := kind.get(precision)) is not None
    ]
    return max(rates, default=None)


def is_noisy(card: MachineCard) -> bool:
    """Return whether others had so much of the machine that the card's rates are too low."""
    return is_busy(card.foreign_ratio)


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


def _path(cache: Path | None) -> Path:
    return (cache or cache_folder()) / f"machine-{fingerprint(identity())}.json"


def _with_disk(card: MachineCard, folder: Path) -> MachineCard:
    disk, missing = measure_disk(folder)
    others = tuple(one for one in card.not_measured if one.what != "disk")
    return msgspec.structs.replace(card, disk=disk, not_measured=(*missing, *others))


def card_of(seen: Observation) -> MachineCard | None:
    """Return what this machine can do, for a session of this machine; None: a different machine, or not measured."""
    try:
        theirs = msgspec.convert(seen.machine, MachineIdentity)
    except msgspec.ValidationError:  # of another version of hotloop
        return None
    return None if differences(theirs, identity()) else kept_card()
