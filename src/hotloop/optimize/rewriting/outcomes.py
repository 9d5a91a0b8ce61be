"""The outcomes that most rewrites end with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hotloop.source.keywords import Changes
from hotloop.source.outcome import AlreadySo, Edited, Refused, Rewrite


def summed_up(notes: Sequence[str], already: str) -> Rewrite:
    """Return what came of a rewrite that changes what is not yet so."""
    return Edited(tuple(notes)) if notes else AlreadySo(already)


def changed(changes: Changes, already: str, environment: Mapping[str, str] | None = None) -> Rewrite:
    """Return what came of changed parameters, with the variables that go with them."""
    if not changes.notes and not environment:
        return AlreadySo(already)
    return Edited(changes.notes, changes.safety, environment or {}, changes.options)


def launched_with(environment: Mapping[str, str]) -> Edited:
    """Return the outcome of what no source can set in time: variables that libraries read when they are loaded."""
    return Edited(environment=dict(environment))


def launched_behind(*words: str) -> Edited:
    """Return the outcome of what another command does to the processes that it starts: `taskset -c 0-3`."""
    return Edited(prefix=words)


def not_observed(what: str, snippet: str) -> Refused:
    """Return the refusal where the observed run never came by such a place."""
    return Refused(f"the observed run shows no {what}", snippet)


def none_of_its_own(what: str, snippet: str) -> Refused:
    """Return the refusal where no file of the program writes such a thing; a library's may."""
    return Refused(f"no file of the program writes {what} out; a library's file is left as it is", snippet)
