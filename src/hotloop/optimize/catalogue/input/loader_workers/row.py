"""loader_workers: batches are made by worker processes, beside training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.diagnose.price.threads import pipelined
from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.program import LoaderFacts
from hotloop.optimize.catalogue.input.loader_workers.activation import WorkerKeywords
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.loaders.worker_knob import WorkerKnob
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import boolean, integer, only, required
from hotloop.optimize.program.bounds import MIN_SHARE, bound, share
from hotloop.optimize.program.cores import cores_per_process
from hotloop.optimize.program.source_calls import program_files
from hotloop.optimize.program.thread_settings import VARIABLES
from hotloop.patterns.told_datasets import changed_from_outside
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

MAX_WORKERS = 16
"""More is not proposed: published advice and the PyTorch forum see diminishing returns after about 8."""
SHORT_EPOCH_S = 100.0
"""Starting two workers took about 1 s on two cores: 1% of such an epoch."""


class LoaderWorkers(Optimization):
    """Load and transform batches in worker processes.

    What it does: `num_workers` of the training loaders is set (with `prefetch_factor` and
    `persistent_workers` where given). Reading, decoding, augmentation and collation then run beside the
    training step. On a CPU the training process may be left fewer threads (`num_threads`), so that the workers
    have cores of their own. The right numbers are measured; 0, loading in the training process, is tried where
    a program uses workers.

    Why it is faster: while the training process waits for data it trains nothing. With workers the next
    batches are made meanwhile, on other cores.

    When it does not help: small samples that are made faster than they are sent between processes; no free
    cores; epochs of a few batches, where starting workers costs more than they save. An IterableDataset that
    does not divide itself by `get_worker_info()` would yield everything once per worker and is left alone, as
    are data sets that hold open files or device tensors, loaders whose workers would be spawned, and loaders
    with so few batches that the workers' queues would never be full.

    Effect on numerics: the order of the samples is the same. Random augmentation draws from the workers'
    random numbers instead of the training process's, so it differs in value, not in kind; with data that is
    not random the numbers are the same.

    Example: `DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4, persistent_workers=True)`

    References: torch.utils.data documentation; PyTorch performance tuning guide; pytorch issue 23048.
    """

    name: ClassVar[str] = "loader_workers"
    family: ClassVar[str] = "input"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    touches_numbers: ClassVar[bool] = False
    conflicts: ClassVar[frozenset[str]] = frozenset({"thread_count", "cpu_affinity", "dataset_in_memory"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return worker counts to try, the most promising first."""
        loaders = training_loaders(observation)
        changeable = [loader for loader in loaders if not loader.iterable or loader.num_workers > 1]
        if not changeable:
            raise DoesNotApply(
                "each worker would yield the whole IterableDataset: its samples would be repeated"
            )
        current = max(loader.num_workers for loader in changeable)
        told = any(loader.told_epoch for loader in changeable) or bool(
            changed_from_outside(program_files(observation))
        )
        candidates = [
            self._candidate(observation, changeable, n, threads, told=told)
            for n in _counts(observation, current)
            for threads in _threads(observation, n)
        ]
        if not candidates:
            part = share(observation, Phase.DATA) or 0.0
            raise DoesNotApply(f"waiting for data takes {part:.1%} of the step: there is nothing to gain")
        return sorted(candidates, key=_likeliest)

    def _candidate(
        self,
        observation: Observation,
        loaders: Sequence[LoaderFacts],
        workers: int,
        threads: int | None,
        *,
        told: bool,
    ) -> Candidate:
        params: dict[str, Any] = {"num_workers": workers}
        if workers and any(_starts_again(loader, observation) for loader in loaders) and not told:
            params["persistent_workers"] = True
        if threads is not None:
            params["num_threads"] = threads
        current = max(loader.num_workers for loader in loaders)
        return self.candidate(
            params=params,
            max_gain=None if workers < current or threads else bound(observation, Phase.DATA),
            prior=_prior(observation, current, workers, threads),
        )

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the number of workers, and that what needs workers has some."""
        only(params, "num_workers", "prefetch_factor", "persistent_workers", "num_threads")
        if "num_threads" in params:
            integer(params, "num_threads", 1, 4096)
        required(params, "num_workers")
        integer(params, "num_workers", 0, 1024)
        boolean(params, "persistent_workers")
        if "prefetch_factor" in params:
            integer(params, "prefetch_factor", 1, 1024)
        if params["num_workers"] == 0 and ("prefetch_factor" in params or params.get("persistent_workers")):
            raise ValueError(
                "num_workers is 0; prefetch_factor and persistent_workers need at least 1 worker"
            )

    def environment(self, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Return what OpenMP and MKL read when they are loaded, where the training process gets fewer threads."""
        if "num_threads" not in params:
            return {}
        return dict.fromkeys(VARIABLES, str(params["num_threads"]))

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the loaders' keywords, and the threads where that is asked for."""
        return WorkerKeywords(
            params["num_workers"],
            params.get("prefetch_factor"),
            params.get("persistent_workers"),
            params.get("num_threads"),
        )

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what feeds the steps from other workers."""
        return WorkerKnob(
            params["num_workers"],
            params.get("prefetch_factor"),
            params.get("persistent_workers"),
            params.get("num_threads"),
        )

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Set the keywords of the training loaders; the threads that they leave go to the launch line."""
        from hotloop.optimize.loaders.loader_rewrite import rewrite_loaders
        from hotloop.optimize.rewriting.own_threads import refused_threads

        refused = refused_threads(source, params["num_threads"]) if "num_threads" in params else None
        if refused is not None:
            return refused
        names = ("num_workers", "prefetch_factor", "persistent_workers")
        keywords = {name: repr(params[name]) for name in names if name in params}
        return rewrite_loaders(source, sites, keywords, self.environment(params))


def _starts_again(loader: LoaderFacts, observation: Observation) -> bool:
    """Whether workers would be started anew so often that keeping them is worth it: seen, or the epochs are short."""
    if loader.num_iterators > 1:
        return True
    if not (loader.dataset_len and loader.batch_size and observation.step):
        return False
    return loader.dataset_len / loader.batch_size * observation.step.median_s < SHORT_EPOCH_S


def _likeliest(candidate: Candidate) -> tuple[float, int]:
    """Of equals the fewest workers go first; beside fewer threads the most, which the cores left idle are for."""
    num_workers: int = candidate.params["num_workers"]
    return -candidate.prior, -num_workers if "num_threads" in candidate.params else num_workers


def _counts(observation: Observation, current: int) -> list[int]:
    """Return the counts to try: at most one worker a core, of those the three largest, and none at all."""
    wait = share(observation, Phase.DATA)
    more: list[int] = []
    if wait is None or wait >= MIN_SHARE:
        cores = cores_per_process(observation)
        more = [n for n in (1, 2, 4, 8, MAX_WORKERS) if n <= cores][-3:]
    return [n for n in [*more, *([0] if current else [])] if n != current]


def _threads(observation: Observation, workers: int) -> list[int | None]:
    """Return the threads to leave the training process beside so many workers; None: as many as it has.

    On a CPU the workers take its cores: threads that wait at barriers for one that has lost its core cost more than
    they give (measured on two cores: two workers 1.2x, with one thread instead of two 1.5x).
    """
    now, cores = observation.program.num_threads, cores_per_process(observation)
    left = max(1, cores - workers)
    if observation.program.device != "cpu" or not workers or now is None or now <= left:
        return [None]
    return [left, None] if workers == 1 else [left]


def _prior(observation: Observation, current: int, workers: int, threads: int | None) -> float:
    """Return the speed ratio that is expected, a guess that orders trials."""
    wait = share(observation, Phase.DATA)
    if wait is None:
        return 1.0
    if workers == 0:
        return 1.0 - wait / 2  # rarely helps: it is tried after the others
    if current:
        return 1.0 / (1.0 - wait + wait * min(1.0, current / workers))
    return pipelined(observation, wait, cores_per_process(observation), workers, threads)
