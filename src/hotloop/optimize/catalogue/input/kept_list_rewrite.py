"""The rewrite of dataset_in_memory: the training loaders read a list of samples, made once, instead of the data set."""

from __future__ import annotations

import re

import libcst as cst

from hotloop.model.sites import Site, SiteKind, Sites
from hotloop.optimize.rewriting import keyword_place, not_observed, remove_keyword, set_keywords
from hotloop.source.calls import argument, code
from hotloop.source.draft import Editor
from hotloop.source.outcome import AlreadySo, CannotEdit, Edited, Refused, Rewrite, Safety

_BY_HAND = "samples = [dataset[i] for i in range(len(dataset))]\nloader = DataLoader(samples, ...)"
_NEEDS_WORKERS = ("persistent_workers", "prefetch_factor", "multiprocessing_context")


def rewrite_to_lists(source: Editor, sites: Sites, *, in_process: bool) -> Rewrite:
    """Give every loader that feeds training a list of the samples.

    The samples are collated one by one then, which the trial did all at once: the patched program may gain less.

    Raises:
        CannotEdit: a loader is not made by the user's own code.
    """
    loaders = [site for site in sites.of(SiteKind.LOADER) if site.in_step]
    if not loaders:
        return not_observed("DataLoader that feeds training", _BY_HAND)
    notes: list[str] = []
    safety = Safety.SAFE
    for site in loaders:
        place, _ = keyword_place(source, site)
        given = argument(source.call(place), "dataset", 0)
        if given is None or not isinstance(given.value, (cst.Name, cst.Attribute, cst.ListComp)):
            return Refused(f"{place.path}:{source.line(place)}: the data set has no name there", _BY_HAND)
        if isinstance(given.value, cst.ListComp):
            continue
        if re.search(r"\.dataset\b", source.file(place.path).module.code):
            safety = Safety.UNSAFE  # `loader.dataset.classes` would not find its attribute in a list
        notes += _as_list(source, site, code(given.value), in_process=in_process)
    return Edited(tuple(notes), safety) if notes else AlreadySo("the training loaders read lists")


def _as_list(source: Editor, site: Site, dataset: str, *, in_process: bool) -> list[str]:
    notes = set_keywords(
        source, site, {"dataset": f"[{dataset}[i] for i in range(len({dataset}))]"}, {"dataset": 0}
    )
    if not notes:
        raise CannotEdit(f"{dataset} could not be replaced")
    if in_process:
        notes += set_keywords(source, site, {"num_workers": "0"}, {"num_workers": 5})
        for name in _NEEDS_WORKERS:
            remove_keyword(source, site, name)
    return notes
