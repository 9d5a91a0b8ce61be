"""The rewrite of the loader optimizations: keywords where the training loaders are constructed."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from hotloop.model.sites import Site, SiteKind, Sites
from hotloop.optimize.loaders.no_workers import without_workers
from hotloop.optimize.rewriting.constructions import keyword_place, set_keywords
from hotloop.optimize.rewriting.outcomes import changed, not_observed
from hotloop.patterns.told_datasets import changed_from_outside
from hotloop.source.calls import argument, code
from hotloop.source.draft import Editor
from hotloop.source.keywords import Changes
from hotloop.source.outcome import CannotEdit, Rewrite

POSITIONS = {"batch_size": 1, "num_workers": 5, "pin_memory": 7}
"""Of DataLoader's parameters, those that torch 2.6 and newer also take by position."""
NEED_WORKERS = frozenset({"persistent_workers", "prefetch_factor"})
"""Without workers DataLoader refuses them."""


def rewrite_loaders(
    source: Editor,
    sites: Sites,
    keywords: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
) -> Rewrite:
    """Set keywords of every loader that was seen to feed training steps.

    Args:
        source: the user's files.
        sites: of the observed run.
        keywords: parameter to value, as Python.
        environment: variables that go with them.

    Raises:
        CannotEdit: a loader is not made by the user's own code, or workers would live on that have to hear of changes.
    """
    loaders = [site for site in sites.of(SiteKind.LOADER) if site.in_step]
    if not loaders:
        arguments = ", ".join(f"{name}={value}" for name, value in keywords.items())
        return not_observed("DataLoader that feeds training", f"DataLoader(dataset, ..., {arguments})")
    if keywords.get("persistent_workers") == "True":
        _refuse_unheard_changes(source)
    changes = Changes()
    for site in loaders:
        if keywords.get("num_workers") == "0":
            changes += without_workers(source, site)
        else:
            changes += set_keywords(source, site, _where_workers(source, site, keywords), POSITIONS)
    words = ", ".join(f"{name}={value}" for name, value in keywords.items())
    return changed(changes, f"the training loaders have {words}", environment)


def _refuse_unheard_changes(source: Editor) -> None:
    """Workers that live on keep the data set that they were started with.

    Raises:
        CannotEdit: the program may change it meanwhile.
    """
    texts = ((path, file.module.code) for path, file in source.draft.files.items())
    place = changed_from_outside(texts)
    if place:
        raise CannotEdit(f"{place} may change the data set, which living workers would not hear")


def _where_workers(source: Editor, site: Site, keywords: Mapping[str, str]) -> Mapping[str, str]:
    """Return the keywords as a loader takes them whose number of workers is an option, and may be 0 another day.

    What takes its own value from elsewhere keeps to that: the default there is a plain value.
    """
    if "num_workers" in keywords:
        return keywords
    place, own = keyword_place(source, site)
    call = source.call(place)
    given = argument(call, "num_workers", POSITIONS["num_workers"] if own else None)
    if given is None or not isinstance(given.value, (cst.Name, cst.Attribute)):
        return keywords
    some = f"{code(given.value)} > 0"
    return {
        name: _where(some, call, name, value) if name in NEED_WORKERS else value
        for name, value in keywords.items()
    }


def _where(some: str, call: cst.Call, name: str, value: str) -> str:
    """Return the value of a keyword that may stand in the call itself, for where there are workers."""
    given = argument(call, name)
    conditional = some if value == "True" else f"{value} if {some} else None"
    if given is None:
        return value if any(arg.star for arg in call.args) else conditional
    written = code(given.value)
    literal = isinstance(given.value, cst.Integer) or written in {"True", "False", "None"}
    return conditional if written == conditional or (literal and written != value) else value
