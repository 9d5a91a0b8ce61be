"""openmp_wait_policy: threads sleep at barriers instead of spinning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.launch.environment import PASSIVE
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.system.openmp_wait_policy.activation import BarrierSleep
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.cores import num_cores, num_processes
from hotloop.probe.activation.activation import Activation
from hotloop.stats.quietness import is_busy

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class OpenmpWaitPolicy(Optimization):
    """Let threads sleep at barriers instead of spinning.

    What it does: `OMP_WAIT_POLICY=PASSIVE`, `GOMP_SPINCOUNT=0` (GNU) and `KMP_BLOCKTIME=0` (Intel, LLVM) are
    set for the command: a thread that has done its part of a parallel region gives its core back.

    Why it is faster: a spinning thread keeps a core from a loader worker, another rank or a neighbour, on
    which the thread it waits for may depend. With a busy neighbour on two cores a convolution step took
    187-345 ms spinning and 68-100 ms passive.

    When it does not help: one process on a quiet machine, where waking a thread costs more than spinning; one
    thread a process, which has no barrier.

    Effect on numerics: none.

    Example: `OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=0 python train.py`

    References: OpenMP specification, OMP_WAIT_POLICY; GNU libgomp manual, GOMP_SPINCOUNT.
    """

    name: ClassVar[str] = "openmp_wait_policy"
    family: ClassVar[str] = "system"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    touches_numbers: ClassVar[bool] = False
    heeds_neighbours: ClassVar[bool] = True

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, where threads meet at barriers."""
        program = observation.program
        if program.num_threads == 1:
            raise DoesNotApply("each process computes with one thread: there is no barrier to wait at")
        if program.environment.get("OMP_WAIT_POLICY", "").upper() == "PASSIVE":
            raise DoesNotApply("OMP_WAIT_POLICY=PASSIVE is set already")
        workers = max((loader.num_workers for loader in program.loaders), default=0)
        wanted = num_processes(observation) * (program.num_threads or 1) + workers
        prior = 1.5 if wanted > num_cores(observation) else 1.0
        if is_busy(observation.foreign_share):
            # 2.5-5x was measured with a busy neighbour. Tried before all else, it also steadies what comes after.
            prior = 5.0
        return [self.candidate(prior=prior)]

    def environment(self, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Return what the OpenMP runtimes read when they are loaded."""
        return dict(PASSIVE)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what looks whether threads sleep; it changes nothing."""
        return BarrierSleep(PASSIVE)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Return the launch line: these variables are read before any line of the program runs."""
        from hotloop.optimize.rewriting.outcomes import launched_with

        return launched_with(self.environment(params))
