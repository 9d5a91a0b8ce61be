"""cpu_affinity: threads, loader workers and ranks on processors of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.machine.host.kernel_list import as_list, physical_cores
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.system.cpu_affinity.activation import Affinity, Placement
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import choice, integer, only, required
from hotloop.optimize.program.cores import num_processes
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

KINDS = ("physical", "apart", "ranks")
_RANKS = """\
cores = {cores}  # the hardware threads of each core that may be used here
each = len(cores) // local_world_size
mine = cores[local_rank * each : (local_rank + 1) * each]
os.sched_setaffinity(0, [cpu for core in mine for cpu in core])
"""
BINDING = ("OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


class CpuAffinity(Optimization):
    """Pin threads, loader workers and ranks to processors of their own.

    What it does: every thread of the training process is bound with `sched_setaffinity`. `cores=physical`: to one
    hardware thread of each core, with its loader workers, as `taskset` does; `apart`: the process leaves
    `worker_cores` cores to its loader workers, which are bound to those, and computes with as many threads as it
    has cores left; `ranks`: each rank of the machine has an equal part of the cores.

    Why it is faster: two threads of one parallel region on the two hardware threads of a core take turns at its vector
    unit; a worker that decodes where a computing thread runs holds up the barrier that all others wait at; a thread
    that is moved finds its caches cold.

    When it does not help: cores with one hardware thread, no workers and one process; most work on an accelerator;
    processors that others use too, from which a bound thread cannot get away.

    Effect on numerics: none, but that with fewer threads parallel sums are split in another way (`apart`).

    Example: `taskset -c 0-7 python train.py`

    References: Linux, sched_setaffinity(2), taskset(1); PyTorch performance tuning guide, "Utilize Non-Uniform Memory
    Access controls".
    """

    name: ClassVar[str] = "cpu_affinity"
    family: ClassVar[str] = "system"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    conflicts: ClassVar[frozenset[str]] = frozenset({"thread_count", "numa_binding", "loader_workers"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the bindings that differ from none on this machine."""
        if not hasattr(os, "sched_setaffinity"):
            raise DoesNotApply("this system does not let a process choose its processors")
        bound = [name for name in BINDING if name in observation.program.environment]
        if bound:
            raise DoesNotApply(f"the program binds its threads itself ({bound[0]})")
        wanted = _kinds(observation, physical_cores())
        if not wanted:
            raise DoesNotApply(
                "each core has one hardware thread, and one process without loader workers uses them"
            )
        return [
            self.candidate(params, touches_numbers=params["cores"] == "apart", prior=prior)
            for params, prior in wanted
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the parameters."""
        only(params, "cores", "worker_cores")
        required(params, "cores")
        choice(params, "cores", KINDS)
        integer(params, "worker_cores", 1, 4096)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what binds."""
        return Affinity(params["cores"], params.get("worker_cores", 1), at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what binds while it is on."""
        return Affinity(params["cores"], params.get("worker_cores", 1), at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Return the launch line; what differs from process to process no launch line can say."""
        from hotloop.optimize.rewriting.outcomes import launched_behind
        from hotloop.source.outcome import Refused

        place = Placement(params["cores"], params.get("worker_cores", 1))
        if params["cores"] == "physical":
            return launched_behind("taskset", "-c", as_list(place.training))
        if params["cores"] == "ranks":
            code = _RANKS.format(cores=[list(core) for core in physical_cores()])
            return Refused("each rank binds itself, before it trains", code)
        code = f"os.sched_setaffinity(0, {set(place.training)})\n"
        code += f"DataLoader(..., worker_init_fn=lambda _: os.sched_setaffinity(0, {set(place.workers)}))"
        return Refused("the process and its workers bind themselves, each to other processors", code)


def _kinds(observation: Observation, cores: Sequence[tuple[int, ...]]) -> list[tuple[dict[str, Any], float]]:
    """Return parameters with what is expected of them: a few percent, where nothing is known."""
    processes = num_processes(observation)
    if processes > 1:
        return [({"cores": "ranks"}, 1.05)] if len(cores) >= processes else []
    workers = max(
        (loader.num_workers for loader in observation.program.loaders if loader.used_in_step), default=0
    )
    found: list[tuple[dict[str, Any], float]] = []
    if workers and len(cores) > 1:
        given = min(workers, len(cores) // 2)
        found.append(({"cores": "apart", "worker_cores": given}, 1.05))
    if any(len(core) > 1 for core in cores):
        found.append(({"cores": "physical"}, 1.04))
    return found
