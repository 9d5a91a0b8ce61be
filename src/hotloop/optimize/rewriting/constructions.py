"""Keywords of the call that constructs an observed object."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from hotloop.model.sites import Place, Site
from hotloop.optimize.rewriting.fixed_class import require_fixed_class
from hotloop.source.calls import without_argument
from hotloop.source.draft import Editor
from hotloop.source.imports import meaning
from hotloop.source.keywords import Changes, set_keyword
from hotloop.source.outcome import CannotEdit


def set_keywords(
    source: Editor, site: Site, keywords: Mapping[str, str], positions: Mapping[str, int] | None = None
) -> Changes:
    """Set keywords of the call that constructs an object; return what changed.

    Args:
        source: the user's files.
        site: the construction.
        keywords: parameter to value, as Python.
        positions: the parameters' places among the positional ones; the call of a subclass has others.

    Raises:
        CannotEdit: no call of the user's constructs it, or a parameter may be hidden in `*args`.
    """
    place, own = keyword_place(source, site)
    changes = Changes()
    for name, value in keywords.items():
        position = (positions or {}).get(name) if own else None
        changes += set_keyword(source, place.path, lambda: source.call(place), name, value, position)
    return changes


def remove_keyword(source: Editor, site: Site, name: str) -> None:
    """Take a keyword out of the call that constructs an object, if it is there."""
    place, _ = keyword_place(source, site)
    call = source.call(place)
    if any(arg.keyword and arg.keyword.value == name for arg in call.args):
        source.change(place.path, call, lambda call: without_argument(call, name))


def keyword_place(source: Editor, site: Site) -> tuple[Place, bool]:
    """Return the call that an object's keywords are given in, and whether it names the class itself.

    A user's subclass that hands everything on (`super().__init__(*args, **kwargs)`) takes them where it is constructed.

    Raises:
        CannotEdit: the user's code does not construct it, or may construct something else there.
    """
    if not site.places:
        raise CannotEdit(f"a library makes the {site.kind.value}")
    for at, place in enumerate(site.places[: site.num_own + 1]):
        call = source.call(place)
        if at == site.num_own or not any(arg.star == "**" for arg in call.args):
            require_fixed_class(source, place, call, site)
            return place, at == 0 and _gives_the_arguments(source, place, call, site)
    raise CannotEdit(f"a library makes the {site.kind.value} of a class of the program's own")


def _gives_the_arguments(source: Editor, place: Place, call: cst.Call, site: Site) -> bool:
    """Whether a call gives the arguments of the class itself, and not those of a function that makes one."""
    written = meaning(source.file(place.path), call.func)
    if site.direct or written.split(".")[-1] == site.callee.split(".")[-1]:
        return True
    raise CannotEdit(
        f"{place.path}:{source.line(place)}: the {site.kind.value} is made in a library, by {written or 'a call'}()"
    )
