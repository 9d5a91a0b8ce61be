"""The optimizations of the process and its machine, in the order in which they are shown."""

from hotloop.optimize.catalogue.system.cpu_affinity import CpuAffinity
from hotloop.optimize.catalogue.system.cpu_allocator import CpuAllocator
from hotloop.optimize.catalogue.system.device_selection import DeviceSelection
from hotloop.optimize.catalogue.system.huge_pages import HugePages
from hotloop.optimize.catalogue.system.numa_binding import NumaBinding
from hotloop.optimize.catalogue.system.openmp_wait_policy import OpenmpWaitPolicy
from hotloop.optimize.catalogue.system.thread_count import ThreadCount
from hotloop.optimize.optimization import Optimization

FAMILY: tuple[type[Optimization], ...] = (
    ThreadCount,
    OpenmpWaitPolicy,
    CpuAffinity,
    NumaBinding,
    CpuAllocator,
    HugePages,
    DeviceSelection,
)
