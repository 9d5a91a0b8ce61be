"""The outcomes that most rewrites end with."""

from __future__ import annotations

from collections.abc import Mapping

from hotloop.source.outcome import AlreadySo, Edited, Refused, Rewrite, Safety


def summed_up(notes: list[str], already: str, safety: Safety = Safety.SAFE) -> Rewrite:
    """Return what came of a rewrite that changes what is not yet so."""
    return Edited(tuple(notes), safety) if notes else AlreadySo(already)


def launched_with(environment: Mapping[str, str]) -> Edited:
    """Return the outcome of what no source can set in time: variables that libraries read when they are loaded."""
    return Edited(environment=dict(environment))


def not_observed(what: str, snippet: str) -> Refused:
    """Return the refusal where the observed run never came by such a place."""
    return Refused(f"the observed run shows no {what}", snippet)
