"""The training loader alone: how many samples it gives with no training, by the number of its workers."""

from __future__ import annotations

from time import monotonic
from typing import Any

from hotloop.optimize.loaders.fetches import Fetches
from hotloop.optimize.loaders.shadow_loader import (
    DEFAULT_PREFETCH,
    ShadowLoader,
    reason_against_workers,
)
from hotloop.optimize.program.containers import tensors_in
from hotloop.probe.activation.knob import Bench

MIN_BATCHES = 3


class LoaderAlone(Bench):
    """Drives the loader that feeds the steps.

    Args:
        counts: numbers of workers to try.
        seconds: to drive each.
    """

    def __init__(self, counts: tuple[int, ...] = (), seconds: float = 1.0) -> None:
        self._counts = counts
        self._seconds = seconds
        self._fetches = Fetches()

    def activation(self, params: dict[str, Any]) -> LoaderAlone:
        """Return what acts."""
        return LoaderAlone(tuple(params["counts"]), params["seconds"])

    def on_torch(self) -> None:
        """See the loaders."""
        self._fetches = Fetches.of_process()

    def watch(self, steps: int) -> None:
        """See which loaders feed the steps."""
        self._fetches.watch(steps)

    def run(self) -> dict[str, Any]:
        """Return samples per second by number of workers, and why others are missing."""
        loader = self._fetches.step_loader()
        if loader is None:
            return {"missing": "no DataLoader feeds the steps"}
        rates: dict[str, float] = {}
        missing: list[str] = []
        for workers in dict.fromkeys((*self._counts, loader.num_workers)):
            reason = reason_against_workers(loader, workers) if workers != loader.num_workers else ""
            if reason and reason not in missing:
                missing.append(reason)
            if not reason:
                rates[str(workers)] = self._rate(loader, workers)
        return {"num_workers": loader.num_workers, "samples_per_s": rates, "missing": "; ".join(missing)}

    def _rate(self, loader: Any, workers: int) -> float:
        shadow = ShadowLoader(loader, workers, None, self._fetches.fetch)
        try:
            # What is in the queues when the clock starts was made before.
            for _ in range(1 + workers * (loader.prefetch_factor or DEFAULT_PREFETCH)):
                shadow.next()
            began, samples, batches = monotonic(), 0, 0
            while batches < MIN_BATCHES or monotonic() - began < self._seconds:
                samples += num_samples(shadow.next(), loader)
                batches += 1
            return samples / (monotonic() - began)
        finally:
            shadow.close()


def num_samples(batch: Any, loader: Any) -> int:
    """Return the samples of a batch: the batch size, as the step counts them, else the rows of the first tensor.

    A padded batch of texts may have its positions first, and one of graphs has the nodes of all.
    """
    if loader.batch_size is not None:
        return int(loader.batch_size)
    first = next((tensor for tensor in tensors_in(batch) if tensor.dim() > 0), None)
    return int(first.shape[0]) if first is not None else 1
