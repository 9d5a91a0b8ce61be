"""The smallest batch on the plateau of throughput, once all sizes were measured beside one another."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.tune.search.state import State
from hotloop.tune.search.status import Known, Status
from hotloop.tune.search.updates import changed
from hotloop.tune.search.working_plan import threshold


def other_sizes(state: State, one: Known) -> list[Known]:
    """Return the other batch sizes that were not measured: which one begins the plateau, all of them tell."""
    return [
        other
        for other in _sizes(state)
        if other.candidate.name == one.candidate.name
        and other.label != one.label
        and one.candidate.samples > 1
        and not other.num_measured
    ]


def without_beyond_plateau(state: State) -> State:
    """Return the state without the sizes above the smallest that helps and that no larger one is shown to beat."""
    sizes = sorted(_sizes(state), key=lambda one: one.candidate.samples)
    if not sizes or not all(one.num_measured for one in sizes):
        return state
    for at, one in enumerate(sizes):
        larger = sizes[at + 1 :]
        if larger and _helps(state, one) and not any(_leads(state, other, one) for other in larger):
            reason = f"not shown to be faster per sample than {one.label}"
            gone = tuple(other.candidate for other in larger)
            return changed(state, gone, status=Status.BEYOND_PLATEAU, reason=reason)
    return state


def _sizes(state: State) -> Iterator[Known]:
    return (one for one in state.known if one.candidate.samples > 1 and one.status.can_be_tried)


def _helps(state: State, one: Known) -> bool:
    gain, deviation = state.gains.gain({one.label})
    return gain >= threshold(deviation)


def _leads(state: State, larger: Known, one: Known) -> bool:
    lead, deviation = state.gains.gain({larger.label}, {one.label})
    return lead >= threshold(deviation)
