"""numa_binding: processors and memory of one node, the one next to the device."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.machine.host.kernel_list import memory_nodes, node_of_pci_device
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.system.numa_binding.activation import MemoryPolicy
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import integer, only, required
from hotloop.optimize.program.cores import num_processes
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class NumaBinding(Optimization):
    """Keep the program on the processors and in the memory of one node.

    What it does: all threads of the process run on the processors of one memory node (`sched_setaffinity`), and memory
    is taken from that node alone (`set_mempolicy`, which `numactl` calls too). Where the model is on an accelerator it
    is the node that the device hangs on.

    Why it is faster: memory of another node is reached over the link between the sockets, at a fraction of the
    bandwidth; batches that are copied to a device cross it twice.

    When it does not help: one node; a model on the CPU that the processors of all nodes are needed for; more memory
    than one node has (it then ends out of memory).

    Effect on numerics: none but how parallel sums are split, where fewer processors are left.

    Example: `numactl --cpunodebind=0 --membind=0 python train.py`

    References: Linux, set_mempolicy(2), numactl(8); PyTorch performance tuning guide, "Utilize Non-Uniform Memory
    Access controls".
    """

    name: ClassVar[str] = "numa_binding"
    family: ClassVar[str] = "system"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    conflicts: ClassVar[frozenset[str]] = frozenset({"cpu_affinity"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the node next to the device; without one each of the two largest."""
        if not hasattr(os, "sched_setaffinity"):
            raise DoesNotApply("this system does not let a process choose its processors")
        nodes = memory_nodes()
        if len(nodes) < 2:
            raise DoesNotApply("the machine has one memory node")
        if num_processes(observation) > 1:
            raise DoesNotApply("several processes train, each of which would need a node of its own")
        near = _near_device(observation)
        largest = sorted(nodes, key=lambda node: -len(nodes[node]))[:2]
        wanted = largest if near is None or near not in nodes else [near]
        return [self.candidate(params={"node": node}, prior=1.05) for node in wanted]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the number of the node."""
        only(params, "node")
        required(params, "node")
        integer(params, "node", 0, 1023)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what binds."""
        return MemoryPolicy(params["node"])

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Return the launch line: memory that is there already stays where it is."""
        from hotloop.optimize.rewriting.outcomes import launched_behind

        node = params["node"]
        return launched_behind("numactl", f"--cpunodebind={node}", f"--membind={node}")


def _near_device(observation: Observation) -> int | None:
    """Return the node that the program's device hangs on; None: it is on the CPU, or nobody tells."""
    if observation.program.device != "cuda":
        return None
    from hotloop.machine.devices.links import pci_address
    from hotloop.machine.devices.nvml import open_nvml

    uuids = [use.uuid for use in observation.memory.devices if use.uuid]
    with open_nvml() as nvml:
        address = pci_address(nvml, uuids[0]) if nvml is not None and uuids else None
    return node_of_pci_device(address) if address is not None else None
