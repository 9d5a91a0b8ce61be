"""Everything `hotloop machine` says: the card, what a petabyte would take, the environment check."""

from collections.abc import Iterator
from pathlib import Path

from hotloop.machine.card.cache import machine_card
from hotloop.machine.card.card import Progress
from hotloop.machine.environment.check import check_environment
from hotloop.machine.environment.snapshot import look
from hotloop.model.machine import CheckStatus, EnvironmentCheck, MachineCard, MachineReport, Rate

_PETABYTE = 1e15


def machine_report(
    folder: Path, *, fresh: bool = False, cache: Path | None = None, progress: Progress = lambda _: None
) -> MachineReport:
    """Return the card, measured or kept, and the environment as it is now.

    Args:
        folder: whose disk is meant, and where trials would write.
        fresh: measure the card again even where one is kept.
        cache: where cards are kept, unless told `~/.cache/hotloop`.
        progress: told what is measured next.
    """
    progress("environment")
    checks = check_environment(look(folder))
    card, cached = machine_card(
        folder, fresh=fresh, is_quiet=is_quiet(checks), cache=cache, progress=progress
    )
    petabyte_s = {name: _PETABYTE / rate.median for name, rate in byte_rates(card)}
    return MachineReport(card=card, cached=cached, petabyte_s=petabyte_s, checks=checks)


def byte_rates(card: MachineCard) -> Iterator[tuple[str, Rate]]:
    """Yield every measured rate of bytes with its name, slowest medium first."""
    found: list[tuple[str, Rate | None]] = []
    if card.disk is not None:
        found.append(("disk_random_128kib_read", card.disk.random_128kib_read_bytes_per_s))
        found.append(("disk_sequential_read", card.disk.sequential_read_bytes_per_s))
    for copies in card.copies:
        device = copies.device
        found.append((f"pageable_to_{device}", copies.pageable_to_device_bytes_per_s))
        found.append((f"pinned_to_{device}", copies.pinned_to_device_bytes_per_s))
        found.append((f"{device}_to_pinned", copies.device_to_pinned_bytes_per_s))
        found += [(f"{device}_to_{other}", rate) for other, rate in copies.peer_bytes_per_s.items()]
        found.append((f"{device}_to_itself", copies.device_to_device_bytes_per_s))
    found.append(("memory", card.memory_bytes_per_s))
    found += [(f"{device.device}_memory", device.memory_bytes_per_s) for device in card.devices]
    yield from ((name, rate) for name, rate in found if rate is not None)


def is_quiet(checks: tuple[EnvironmentCheck, ...]) -> bool:
    """Return whether the background load, as checked, allows measuring."""
    return any(check.name == "background-load" and check.status is CheckStatus.OK for check in checks)
