"""thread_count: as many threads in each process as it has cores to itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.diagnose.price.threads import with_threads
from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.knobs.threads import ThreadKnob
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import integer, only, required
from hotloop.optimize.program.bounds import share
from hotloop.optimize.program.cores import cores_per_process, num_cores, num_processes
from hotloop.optimize.program.thread_settings import VARIABLES, Threads
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


ALL_OF_IT = 0.95
"""Of the step: three counts took 12 s of 258 on an H200, and changed nothing."""


class ThreadCount(Optimization):
    """Give each process as many threads as it has cores to itself.

    What it does: `OMP_NUM_THREADS` and `MKL_NUM_THREADS` are set for the command, and `torch.set_num_threads`
    in each process; the program's own calls of it, and the 1 that torchrun exports to its children, do not
    change it again. Loader workers keep the single thread that torch gives them.

    Why it is faster: too many threads wait for each other at every parallel region: two processes of two
    threads on two cores were 4 to 10 times slower than of one thread. Too few (torchrun's default of 1) leave
    cores idle.

    When it does not help: the default, one thread a core, is right for one process without loader workers;
    most of the work is on an accelerator.

    Effect on numerics: parallel sums are split in another way.

    Example: `OMP_NUM_THREADS=4 torchrun --nproc-per-node 2 train.py` or `torch.set_num_threads(4)`

    References: PyTorch performance tuning guide, "Utilize OpenMP"; torchrun documentation.
    """

    name: ClassVar[str] = "thread_count"
    family: ClassVar[str] = "system"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    heeds_neighbours: ClassVar[bool] = True
    conflicts: ClassVar[frozenset[str]] = frozenset({"loader_workers", "cpu_affinity"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the counts to try, the one that fills the cores first."""
        _require_work_of_the_host(observation)
        current = observation.program.num_threads
        counts = [n for n in _counts(observation) if n != current]
        if not counts:
            seen = f"{num_processes(observation)} processes on {num_cores(observation)} cores"
            raise DoesNotApply(f"there is no other count to try for {seen}")
        return [
            self.candidate(params={"num_threads": n}, prior=_prior(observation, current, n)) for n in counts
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the number of threads."""
        only(params, "num_threads")
        required(params, "num_threads")
        integer(params, "num_threads", 1, 4096)

    def environment(self, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Return what OpenMP and MKL read when they are loaded; torchrun leaves what is set."""
        return dict.fromkeys(VARIABLES, str(params["num_threads"]))

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what sets the count, and keeps it."""
        return Threads(params["num_threads"])

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what changes the count to and fro."""
        return ThreadKnob(params["num_threads"])

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Return the launch line, read before any line of the program runs, where none of them says otherwise."""
        from hotloop.optimize.rewriting.own_threads import launched_with_threads

        return launched_with_threads(source, self.environment(params), params["num_threads"])


def _require_work_of_the_host(observation: Observation) -> None:
    """Refuse where a device does all that the step consists of.

    Raises:
        DoesNotApply: with its share.
    """
    device = observation.program.device
    part = share(observation, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.TRANSFER)
    if device != "cpu" and part is not None and part >= ALL_OF_IT:
        raise DoesNotApply(f"{part:.0%} of the step is work of {device}: threads of the host do none of it")


def _counts(observation: Observation) -> list[int]:
    """Return all cores, those that the loader's workers leave, half of them, and one."""
    cores = cores_per_process(observation)
    workers = max((loader.num_workers for loader in observation.program.loaders), default=0)
    wanted = [cores, cores - workers, cores // 2, 1]
    return [n for n in dict.fromkeys(wanted) if n >= 1]


def _prior(observation: Observation, current: int | None, wanted: int) -> float:
    """Return a guess that orders trials.

    Oversubscription costs a factor of 4 to 10 (two processes of two threads on two cores); idle cores cost
    what the parallel part gains from them.
    """
    if current is None or observation.program.device != "cpu":
        return 1.0
    cores = cores_per_process(observation)
    if current > cores >= wanted:
        return 4.0 if wanted == cores else 2.0
    return 1.0 / with_threads(observation, current, wanted)
