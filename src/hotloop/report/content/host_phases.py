"""Shares of the phases as samples of a training thread tell them: where no step could be timed."""

from __future__ import annotations

from collections import Counter

from hotloop.model.deep import HostSamples
from hotloop.model.observation import Phase


def host_phases(host: HostSamples) -> dict[Phase, float]:
    """Return the share of the training thread's samples in each phase, 0 to 1; empty: it was not seen."""
    spent: Counter[Phase] = Counter()
    for sample in host.samples:
        if sample.process == "train" and sample.phase is not None:
            spent[Phase(sample.phase)] += sample.num
    return {phase: spent[phase] / spent.total() for phase in Phase if phase in spent}


def host_sentence(host: HostSamples) -> str:
    """Return the largest phase in a sentence."""
    found = host_phases(host)
    if not found:
        return "The training thread was not seen."
    largest = max(found, key=found.__getitem__)
    return (
        f"{found[largest]:.0%} of the training thread's time goes to {largest.value}, sampled from outside."
    )
