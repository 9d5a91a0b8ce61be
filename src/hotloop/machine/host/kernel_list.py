"""Lists of processors as the kernel writes them, read with the standard library alone: also in the user's process."""

import os
from pathlib import Path

ROOT = Path("/")


def core_list(text: str) -> tuple[int, ...]:
    """Return the cores of a kernel list: `0-3,8` is 0, 1, 2, 3, 8."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            found += range(int(first), int(last or first) + 1)
    return tuple(found)


def as_list(cores: tuple[int, ...]) -> str:
    """Return cores as the kernel, `taskset` and `numactl` write them: 0, 1, 2, 3, 8 is `0-3,8`."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def usable() -> tuple[int, ...]:
    """Return the processors that this process may run on; empty: this system does not tell."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


def physical_cores(root: Path = ROOT, among: tuple[int, ...] | None = None) -> tuple[tuple[int, ...], ...]:
    """Return the hardware threads of each core, of those that this process may run on.

    Args:
        root: of the file system.
        among: the processors to tell apart; None: all that are usable.
    """
    mine = usable() if among is None else among
    found = {
        core_list(_read(root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")) or (cpu,)
        for cpu in mine
    }
    return tuple(sorted(tuple(cpu for cpu in core if cpu in mine) for core in found))


def memory_nodes(root: Path = ROOT) -> dict[int, tuple[int, ...]]:
    """Return the processors of each memory node that has some."""
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    nodes = {int(folder.name[4:]): core_list(_read(folder / "cpulist")) for folder in folders}
    return {node: cores for node, cores in sorted(nodes.items()) if cores}


def node_of_pci_device(address: str, root: Path = ROOT) -> int | None:
    """Return the memory node next to a device; None: the kernel does not tell, or there is one node."""
    text = _read(root / "sys/bus/pci/devices" / address.lower() / "numa_node")
    return int(text) if text.isdigit() else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
