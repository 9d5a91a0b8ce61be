"""The machine card: what this machine can do, measured within half a minute."""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import psutil

from hotloop.machine.card.disk_rate import disk_rates
from hotloop.machine.card.memory_rate import array_bytes, memory_rate
from hotloop.machine.card.numpy_rates import numpy_rates
from hotloop.machine.card.torch_process import TorchError, torch_rates, torch_version
from hotloop.machine.devices.amd import open_amd
from hotloop.machine.devices.gpu_class import CPU_LOADER, gpu_class
from hotloop.machine.devices.nvml import open_nvml
from hotloop.machine.environment.contention import ForeignLoad, others_share
from hotloop.machine.host.identity import identity
from hotloop.machine.host.topology import cores
from hotloop.model.errors import HotloopError
from hotloop.model.machine import (
    Cores,
    DeviceRates,
    DiskRates,
    GpuCard,
    MachineCard,
    MachineIdentity,
    NotMeasured,
)

Progress = Callable[[str], None]

INSTALL_TORCH = 'pip install "hotloop[torch]"'


def measure_card(folder: Path, progress: Progress = lambda _: None) -> MachineCard:
    """Measure everything that can be measured here; what cannot is named in `not_measured`."""
    start, load, who = time.monotonic(), ForeignLoad(), identity()
    before = load.snapshot((os.getpid(),))
    progress("disk")
    disk, missing = measure_disk(folder)
    progress("memory")
    wiring = cores()
    size = array_bytes(wiring.last_level_cache_bytes, psutil.virtual_memory().available)
    card = MachineCard(
        measured_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        identity=who,
        cores=wiring,
        wall_s=0.0,
        memory_bytes_per_s=memory_rate(wiring.num_usable, size),
        disk=disk,
        gpus=gpu_cards(who),
        network_nominal_bytes_per_s=_network(),
        cpu_loader=None if who.accelerators else CPU_LOADER,
        not_measured=(*missing, NotMeasured("network", "measuring a network takes a second machine")),
    )
    progress("compute")
    card = _with_compute(card)
    return msgspec.structs.replace(
        card,
        foreign_ratio=others_share(before, load.snapshot((os.getpid(),))),
        wall_s=time.monotonic() - start,
    )


def measure_disk(folder: Path) -> tuple[DiskRates | None, tuple[NotMeasured, ...]]:
    """Return the disk's rates, or why there are none: a full disk must not cost the rest of the card."""
    try:
        return disk_rates(folder), ()
    except HotloopError as error:
        return None, (NotMeasured("disk", error.message, error.hint),)


def gpu_cards(who: MachineIdentity) -> tuple[GpuCard, ...]:
    """Return what the drivers tell of each accelerator; its name alone without a driver library."""
    with ExitStack() as libraries:
        readers = [libraries.enter_context(library()) for library in (open_nvml, open_amd)]
        cards = tuple(
            GpuCard(
                name=device.name,
                memory_bytes=device.memory_bytes,
                gpu_class=gpu_class(device.name),
                pcie=device.pcie,
                num_links=device.num_links,
                max_clock_hz=device.max_clock_hz,
                power_limit_w=device.power_limit_w,
            )
            for reader in readers
            if reader is not None
            for device in reader.devices()
        )
    return cards or tuple(
        GpuCard(name=one.name, memory_bytes=one.memory_bytes, gpu_class=gpu_class(one.name))
        for one in who.accelerators
    )


def _with_compute(card: MachineCard) -> MachineCard:
    """Add the rates of every device with torch, of the processor alone without."""
    version = torch_version()
    if version is None:
        missing = NotMeasured(
            "bf16, fp16 and tf32 matmul, convolution, device copies", "torch is not installed", INSTALL_TORCH
        )
        return _without_torch(card, missing)
    try:
        rates = torch_rates(_num_threads(card.cores))
    except TorchError as error:
        return _without_torch(card, NotMeasured("everything that needs torch", str(error), error.hint))
    failed = tuple(NotMeasured(*line.split(": ", 1)) for line in rates.errors)
    return msgspec.structs.replace(
        card,
        torch_version=version,
        devices=tuple(_named(device, card.identity.cpu_model) for device in rates.devices),
        copies=rates.copies,
        not_measured=(*card.not_measured, *failed, *_device_copies_missing(card, len(rates.devices) > 1)),
    )


def _num_threads(cores: Cores) -> int:
    """One a physical core, as torch chooses itself: the second thread of a core adds no arithmetic units."""
    return min(cores.num_usable, cores.num_physical or cores.num_usable)


def _named(device: DeviceRates, cpu_model: str) -> DeviceRates:
    """Give the processor its name, which torch does not know."""
    return msgspec.structs.replace(device, name=cpu_model) if device.device == "cpu" else device


def _without_torch(card: MachineCard, missing: NotMeasured) -> MachineCard:
    return msgspec.structs.replace(
        card,
        devices=(numpy_rates(card.identity.cpu_model),),
        not_measured=(*card.not_measured, missing),
    )


def _device_copies_missing(card: MachineCard, has_device: bool) -> tuple[NotMeasured, ...]:
    if has_device:
        return ()
    if not card.identity.accelerators:
        return (NotMeasured("host-to-device and device copies", "no accelerator on this machine"),)
    names = ", ".join(accelerator.name for accelerator in card.identity.accelerators)
    return (
        NotMeasured(
            "rates and copies of the accelerator",
            f"{names} is here, but this torch cannot use it (torch.cuda.is_available() is False)",
            "install the torch build for this driver: https://pytorch.org/get-started/locally/",
        ),
    )


def _network() -> dict[str, float]:
    """Nominal speeds of the interfaces that are up; virtual ones say nothing."""
    return {
        name: stats.speed * 1e6 / 8
        for name, stats in psutil.net_if_stats().items()
        if stats.isup and stats.speed > 0
    }
