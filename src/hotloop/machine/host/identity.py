"""Who this machine is, cheaply: what a plan or a cached measurement is checked against."""

import hashlib
import math
import os
import platform
import subprocess
from pathlib import Path

import msgspec
import psutil

from hotloop.machine.devices.accelerators import accelerators
from hotloop.machine.host import cgroup
from hotloop.model.machine import MachineIdentity
from hotloop.model.quantities import byte_size

_ISA_X86 = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx_vnni")
_ISA_X86_TILES = ("amx_tile", "amx_bf16", "amx_int8", "amx_fp16")
_ISA_ARM = ("asimd", "asimdhp", "sve", "sve2", "bf16", "i8mm", "sme")
_ISA = frozenset((*_ISA_X86, *_ISA_X86_TILES, *_ISA_ARM))
"""Flags of /proc/cpuinfo that oneDNN, MKL, OpenBLAS and the Arm Compute Library dispatch on."""
_MEMORY_TOLERANCE = 0.05
"""MemTotal moves with the kernel's reservations: 1 to 2% between kernels of one cloud machine type."""

MEMORY_CLASSES = 2
"""Of memory between a size and twice it: machines have 8, 12, 16, 24 or 32 GiB, of which the kernel keeps some."""


def identity(root: Path = Path("/")) -> MachineIdentity:
    """Return this machine's fingerprint; a few milliseconds, torch is not imported."""
    cpuinfo = _cpuinfo(root)
    return MachineIdentity(
        cpu_model=_cpu_model(cpuinfo),
        num_cores=num_cores(root),
        memory_bytes=memory_bytes(root),
        isa=tuple(sorted(_ISA & set((cpuinfo.get("flags") or cpuinfo.get("Features") or "").split()))),
        accelerators=accelerators(root),
        os=_os(),
        python_version=platform.python_version(),
    )


def num_cores(root: Path = Path("/")) -> int:
    """Return how many cores this process can keep busy at once, at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup.quota_cores(root)
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def memory_bytes(root: Path = Path("/")) -> int:
    """Return the memory this process may use."""
    total: int = psutil.virtual_memory().total
    return min(total, cgroup.memory_limit_bytes(root) or total)


def fingerprint(machine: MachineIdentity) -> str:
    """Return a short key of the machine; versions of Python and the kernel, and a little memory, do not move it."""
    stable = msgspec.structs.replace(
        machine,
        memory_bytes=round(MEMORY_CLASSES * math.log2(max(1, machine.memory_bytes))),
        os=f"{platform.system()} {platform.machine()}",
        python_version="",
    )
    return hashlib.sha256(msgspec.json.encode(stable)).hexdigest()[:16]


def differences(then: MachineIdentity, now: MachineIdentity) -> tuple[str, ...]:
    """Return what sets two machines apart, as sentences; empty where a plan of one fits the other.

    Python's version and the operating system's release are not differences of the machine.
    """
    found = []
    for name in ("cpu_model", "num_cores", "isa", "accelerators"):
        was, is_ = getattr(then, name), getattr(now, name)
        if was != is_:
            found.append(f"{name.replace('_', ' ')}: was {_text(was)}, is {_text(is_)}")
    if abs(then.memory_bytes - now.memory_bytes) > _MEMORY_TOLERANCE * then.memory_bytes:
        found.append(f"memory: was {byte_size(then.memory_bytes)}, is {byte_size(now.memory_bytes)}")
    return tuple(found)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(getattr(item, "name", item)) for item in value) or "none"
    return str(value)


def _cpuinfo(root: Path) -> dict[str, str]:
    """The first processor's fields; empty off Linux."""
    try:
        first = (root / "proc/cpuinfo").read_text().split("\n\n", 1)[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _cpu_model(cpuinfo: dict[str, str]) -> str:
    """Family and model are added because clouds shorten names: `AMD EPYC`, `Intel Xeon CPU @ 2.20GHz`."""
    name = cpuinfo.get("model name") or _apple_name() or platform.processor() or platform.machine()
    if "cpu family" not in cpuinfo:
        return name
    return f"{name} (family {cpuinfo['cpu family']} model {cpuinfo.get('model', '?')})"


def _apple_name() -> str:
    if platform.system() != "Darwin":
        return ""
    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _os() -> str:
    series = ".".join(platform.release().split(".")[:2])
    return f"{platform.system()} {series} {platform.machine()}"
