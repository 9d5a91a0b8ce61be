"""What a machine is: the facts that decide whether something measured on it still holds."""

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
