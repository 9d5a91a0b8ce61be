"""The activation of numa_binding: this process on one memory node, processors and memory."""

from __future__ import annotations

import ctypes
import os
import platform

from hotloop.machine.host.kernel_list import as_list, memory_nodes
from hotloop.probe.activation.activation import Activation

BIND = 2
"""MPOL_BIND of linux/mempolicy.h."""
CALLS = {"x86_64": (238, 239), "aarch64": (237, 236)}
"""Numbers of set_mempolicy and get_mempolicy."""
_MAX_NODES = 1024
"""The kernel's limit: get_mempolicy needs a mask for all nodes."""


class MemoryPolicy(Activation):
    """Binds this process, and all that it starts, to one node.

    Args:
        node: its number.
    """

    def __init__(self, node: int) -> None:
        self._node = node
        self._cores = memory_nodes().get(node, ())
        self._failed = ""

    def on_torch(self) -> None:
        """Bind what is there; what was allocated before stays where it is."""
        if not self._cores:
            self._failed = f"this machine has no memory node {self._node} with processors"
            return
        usable = os.sched_getaffinity(0) & set(self._cores)
        if not usable:
            self._failed = f"this process may not run on node {self._node}"
            return
        for task in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(task), usable)
        self._failed = bind_memory(self._node)

    def effect(self) -> tuple[bool, str]:
        """Return whether the kernel says so."""
        if self._failed:
            return False, self._failed
        policy, nodes = memory_policy()
        on = (policy, nodes) == (BIND, (self._node,)) and os.sched_getaffinity(0) <= set(self._cores)
        return on, f"processors {as_list(tuple(os.sched_getaffinity(0)))}, memory of node {as_list(nodes)}"


def bind_memory(node: int) -> str:
    """Let memory come from one node alone; return why not, or nothing."""
    numbers = CALLS.get(platform.machine())
    if numbers is None:
        return f"the system call is not known on {platform.machine()}"
    libc = ctypes.CDLL(None, use_errno=True)
    mask = (ctypes.c_ulong * (_MAX_NODES // 64))()
    mask[node // 64] = 1 << node % 64
    if libc.syscall(numbers[0], BIND, mask, ctypes.c_ulong(_MAX_NODES)):
        return f"set_mempolicy: {os.strerror(ctypes.get_errno())}"
    return ""


def memory_policy() -> tuple[int, tuple[int, ...]]:
    """Return the policy of this thread, and its nodes."""
    numbers = CALLS.get(platform.machine())
    mode, mask = ctypes.c_int(-1), (ctypes.c_ulong * (_MAX_NODES // 64))()
    if numbers is not None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall(numbers[1], ctypes.byref(mode), mask, ctypes.c_ulong(_MAX_NODES), None, 0)
    nodes = tuple(at for at in range(_MAX_NODES) if mask[at // 64] >> at % 64 & 1)
    return mode.value, nodes
