"""What a machine is: the facts that decide whether something measured on it still holds."""

from enum import Enum

import msgspec


class Accelerator(msgspec.Struct, frozen=True):
    """One accelerator, as its driver names it."""

    name: str
    memory_bytes: int | None = None
    """None: the driver's library that knows it is not installed."""


class MachineIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The fingerprint of a machine: no host name, nothing that changes with a reboot."""

    cpu_model: str
    num_cores: int
    """Cores this process may use: affinity and cgroup quota are taken off."""
    memory_bytes: int
    """Memory this process may use: a cgroup's limit is respected."""
    isa: tuple[str, ...] = ()
    """Instruction sets that matrix libraries choose their kernels by, sorted."""
    accelerators: tuple[Accelerator, ...] = ()
    os: str
    """System and release series: `Linux 6.8 x86_64`."""
    python_version: str


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A measured rate over repeats; its unit is in the name of the field that holds it."""

    median: float
    low: float
    """The slowest repeat."""
    high: float
    """The fastest repeat."""
    num: int
    method: str


class Cores(msgspec.Struct, frozen=True, kw_only=True):
    """The processor's cores and how they are wired."""

    num_logical: int
    num_usable: int
    """For this process: affinity and cgroup quota are taken off."""
    num_physical: int | None = None
    quota_cores: float | None = None
    """None: no quota."""
    numa_nodes: tuple[tuple[int, ...], ...] = ()
    """The logical cores of each memory node; empty: not told."""
    max_clock_hz: float | None = None
    last_level_cache_bytes: int | None = None
    governor: str | None = None
    """None: the kernel shows no frequency control (virtual machines)."""
    hypervisor: bool | None = None


class DeviceRates(msgspec.Struct, frozen=True, kw_only=True):
    """What one compute device reached; precisions by name: fp32, tf32, bf16, fp16."""

    device: str
    """`cpu`, `cuda:0`, ..."""
    name: str
    matmul_flop_per_s: dict[str, Rate] = {}
    convolution_flop_per_s: dict[str, Rate] = {}
    memory_bytes_per_s: Rate | None = None


class CopyRates(msgspec.Struct, frozen=True, kw_only=True):
    """Copies to and from one accelerator."""

    device: str
    pinned_to_device_bytes_per_s: Rate | None = None
    pageable_to_device_bytes_per_s: Rate | None = None
    device_to_pinned_bytes_per_s: Rate | None = None
    device_to_device_bytes_per_s: Rate | None = None
    """Within the device: bytes copied, each read once and written once."""
    peer_bytes_per_s: dict[str, Rate] = {}
    """To each other device."""


class DiskRates(msgspec.Struct, frozen=True, kw_only=True):
    """Reads of a scratch file in one folder."""

    folder: str
    mount: str
    """The mount point that the folder is on."""
    filesystem: str
    cache_bypassed: bool
    """False: the file system keeps files in memory, so the rates are those of memory."""
    sequential_read_bytes_per_s: Rate | None = None
    random_4kib_reads_per_s: Rate | None = None
    random_128kib_read_bytes_per_s: Rate | None = None
    """About one JPEG photograph at a time, one reader."""


class LoaderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """DataLoader settings to start from: advice for a class of hardware, not a measurement."""

    min_workers: int
    max_workers: int
    pin_memory: bool
    persistent_workers: bool
    prefetch_factor: int | None


class GpuClass(msgspec.Struct, frozen=True, kw_only=True):
    """A family of accelerators that wants the same settings."""

    name: str
    half_precision: str
    """The 16-bit format its matrix units are fast in, to be tried first."""
    tf32: bool
    loader: LoaderSettings
    source: str


class GpuCard(msgspec.Struct, frozen=True, kw_only=True):
    """One accelerator as its driver describes it."""

    name: str
    memory_bytes: int | None = None
    gpu_class: GpuClass | None = None
    """None: not a class we know."""
    pcie: str | None = None
    num_links: int | None = None
    max_clock_hz: float | None = None
    power_limit_w: float | None = None


class NotMeasured(msgspec.Struct, frozen=True):
    """A number that is missing, why, and how to get it."""

    what: str
    why: str
    hint: str = ""


CARD_SCHEMA = 1
"""Raised when a field of the card changes its meaning or a method of measuring changes its numbers."""


class MachineCard(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine can do, as measured on one day."""

    measured_at: str
    """UTC, ISO 8601."""
    identity: MachineIdentity
    cores: Cores
    torch_version: str | None = None
    """None: measured without torch."""
    foreign_ratio: float | None = None
    """Share of the machine that others, and other guests of the hypervisor, used while it was measured."""
    wall_s: float
    """How long measuring took."""
    memory_bytes_per_s: Rate | None = None
    devices: tuple[DeviceRates, ...] = ()
    copies: tuple[CopyRates, ...] = ()
    disk: DiskRates | None = None
    gpus: tuple[GpuCard, ...] = ()
    network_nominal_bytes_per_s: dict[str, float] = {}
    """What each interface that is up says of its link; not measured: that takes a second machine."""
    cpu_loader: LoaderSettings | None = None
    """What inference on the CPU wants; None: there is an accelerator."""
    not_measured: tuple[NotMeasured, ...] = ()
    schema: int = CARD_SCHEMA


class CheckStatus(str, Enum):
    """What an environment check found."""

    OK = "ok"
    WARNING = "warning"
    """It would spoil a measurement."""
    INFO = "info"
    """Worth knowing; it spoils nothing by itself."""
    UNKNOWN = "unknown"
    """The system does not tell."""


class EnvironmentCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that could spoil a measurement here."""

    name: str
    status: CheckStatus
    seen: str
    """The value seen, with its unit."""
    why: str
    """Why it matters."""
    fix: str = ""
    """What to type or change; empty where nothing is wrong."""


class MachineReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `hotloop machine` says."""

    card: MachineCard
    cached: bool
    """The card was measured earlier, on the day it names."""
    petabyte_s: dict[str, float]
    """How long a petabyte takes at each measured rate of bytes."""
    checks: tuple[EnvironmentCheck, ...]
    """As of now, never cached."""
    schema: int = 1
