"""Which loaders of the program feed the training step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hotloop.model.observation import Observation
from hotloop.model.program import LoaderFacts
from hotloop.model.quantities import listed
from hotloop.model.sites import Site, SiteKind, Sites
from hotloop.optimize.optimization import DoesNotApply
from hotloop.source.outcome import CannotEdit

if TYPE_CHECKING:
    from hotloop.source.draft import Editor

SELDOM = 0.02
"""Batches a step. Of a data set that is one batch a single one is taken, for as many steps as there are."""


def training_loaders(observation: Observation) -> tuple[LoaderFacts, ...]:
    """Return the loaders that were seen to feed steps, or all that may, where that was not seen: threads may take them.

    Raises:
        DoesNotApply: the program has no DataLoader, or takes next to nothing from those that it has.
    """
    loaders = observation.program.loaders
    if not loaders:
        raise DoesNotApply("the program has no DataLoader")
    used = tuple(loader for loader in loaders if loader.used_in_step)
    if used or not any(loader.batches_per_step for loader in loaders):
        return used or loaders
    feeding = tuple(loader for loader in loaders if (loader.batches_per_step or 0.0) >= SELDOM)
    if not feeding:
        raise DoesNotApply(f"fewer than one batch in {1 / SELDOM:.0f} steps is taken from a DataLoader")
    return feeding


def sites_acted_on(source: Editor, sites: Sites) -> tuple[Site, ...]:
    """Return the constructions of the loaders that feed training, where a trial that acted did so on all of them.

    A trial leaves a loader alone whose samples are random, say, and acts on others; its account does not tell which.

    Raises:
        CannotEdit: loaders that feed training are made in several places.
    """
    loaders = tuple(site for site in sites.of(SiteKind.LOADER) if site.in_step)
    places = list(dict.fromkeys(site.construction for site in loaders))
    if len(places) > 1:
        lines = listed([f"{place.path}:{source.line(place)}" if place else "a library" for place in places])
        raise CannotEdit(
            f"{lines} make loaders that feed training; "
            "the trial may have left one of them alone, and does not tell which"
        )
    return loaders


def refuse_random_samples(loaders: Sequence[LoaderFacts]) -> None:
    """Refuse where the samples of all loaders are others each time that they are read.

    Raises:
        DoesNotApply: reading them was seen to draw random numbers.
    """
    if loaders and all(loader.draws for loader in loaders):
        names = listed(loaders[0].draws or ())
        raise DoesNotApply(f"reading samples of {loaders[0].dataset} draws random numbers from {names}")


def loaders_with_workers(observation: Observation) -> tuple[LoaderFacts, ...]:
    """Return the training loaders that have workers.

    Raises:
        DoesNotApply: there are none.
    """
    loaders = tuple(loader for loader in training_loaders(observation) if loader.num_workers > 0)
    if not loaders:
        raise DoesNotApply("no training loader has workers (see loader_workers)")
    return loaders
