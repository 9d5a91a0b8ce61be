"""Predictions for what cannot be switched in a running program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.ceilings import Prediction
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio


def predictions(
    observation: Observation, candidates: Sequence[Candidate], known: Sequence[Prediction]
) -> Iterator[Prediction]:
    """Return predictions for the candidates without one, where something is known of them."""
    switched = {one.name for one in known}
    priced = {
        finding.optimization: finding
        for finding in reversed(diagnose(observation).findings)
        if finding.optimization and finding.gain
    }
    for candidate in candidates:
        finding = priced.get(candidate.name)
        if candidate.name == "cpu_allocator":
            yield from _other_allocator(candidate, known)
        elif "num_threads" in candidate.params:
            continue  # a finding knows what waiting costs, and nothing of computing with fewer threads
        elif candidate.name not in switched and finding is not None and finding.gain is not None:
            method = f"from the finding {finding.code}"
            yield Prediction(name=candidate.name, params=candidate.params, ratio=finding.gain, method=method)


def _other_allocator(candidate: Candidate, known: Sequence[Prediction]) -> Iterator[Prediction]:
    """Jemalloc and tcmalloc keep large buffers, too: what malloc's own switches bring, give or take as much."""
    tried = next((one for one in known if one.name == candidate.name), None)
    if tried is None or tried.params == candidate.params:
        return
    reach = abs(tried.ratio.ratio - 1.0)
    ratio = Ratio(tried.ratio.ratio, tried.ratio.low - reach, tried.ratio.high + reach)
    yield Prediction(
        name=candidate.name, params=candidate.params, ratio=ratio, method="as malloc's own switches do"
    )
