"""Rewrites that many optimizations share: keywords of a construction, statements after the imports, a launch line."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from hotloop.model.sites import Place, Site
from hotloop.source.calls import argument, code, with_argument, without_argument
from hotloop.source.draft import Editor
from hotloop.source.imports import last_import, meaning, module_name
from hotloop.source.outcome import AlreadySo, CannotEdit, Edited, Refused, Rewrite, Safety
from hotloop.source.statements import insert_after


def set_keywords(
    source: Editor, site: Site, keywords: Mapping[str, str], positions: Mapping[str, int] | None = None
) -> list[str]:
    """Set keywords of the call that constructs an object; return a note for each one that changed.

    Args:
        source: the user's files.
        site: the construction.
        keywords: parameter to value, as Python.
        positions: the parameters' places among the positional ones; the call of a subclass has others.

    Raises:
        CannotEdit: no call of the user's constructs it, or a parameter is hidden in `**kwargs`.
    """
    place, own = keyword_place(source, site)
    notes = []
    for name, value in keywords.items():
        call = source.call(place)
        position = (positions or {}).get(name) if own else None
        given = argument(call, name, position)
        if given is not None and code(given.value) == value:
            continue
        source.change(
            place.path,
            call,
            lambda call, name=name, value=value, position=position: with_argument(
                call, name, value, position
            ),  # type: ignore[misc]
        )
        notes.append(f"{place.path}:{source.line(place)}: {name}={value}")
    return notes


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
        CannotEdit: the user's code does not construct it.
    """
    if not site.places:
        raise CannotEdit(f"a library makes the {site.kind.value}")
    for place in site.places[: site.num_own + 1]:
        call = source.call(place)
        if not any(arg.star for arg in call.args):
            return place, _names(source, place, call, site)
    place = site.places[min(site.num_own, len(site.places) - 1)]
    return place, _names(source, place, source.call(place), site)


def _names(source: Editor, place: Place, call: cst.Call, site: Site) -> bool:
    """Whether a call gives the arguments of the class itself, and not those of a function that makes one."""
    written = meaning(source.file(place.path), call.func)
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "__init__":
        return True
    if written.split(".")[-1] == site.callee.split(".")[-1]:
        return True
    raise CannotEdit(
        f"{place.path}:{source.line(place)}: {written or 'what is called there'}() makes the {site.kind.value}, "
        "in code that is not the program's own"
    )


def add_to_the_top(source: Editor, path: str, statement: str, module: str = "torch") -> list[str]:
    """Put a statement behind the imports of the program's main file; return a note, nothing where it is there.

    Args:
        source: the user's files.
        path: of the main file.
        statement: with `{module}` for the name that the file has for it: `{module}.backends.cudnn.benchmark = True`.
        module: what has to be imported for it.
    """
    text = statement.replace("{module}", module_name(source, path, module))
    file = source.file(path)
    if any(code(line) == text for line in file.module.body):
        return []
    line = last_import(file)
    assert line is not None, "it was just imported"
    following = list(file.module.body)[list(file.module.body).index(line) + 1 :]
    for (
        each
    ) in following:  # behind the settings that the program makes there itself, and those of earlier steps
        if not (isinstance(each, cst.SimpleStatementLine) and code(each).startswith(f"{module}.")):
            break
        line = each
    insert_after(source, path, line, text, apart=line is last_import(file))
    return [f"{path}: {text}"]


def main_file(source: Editor, sites: tuple[Site, ...]) -> str:
    """Return the file in which the program begins: the outermost frame that was seen.

    Raises:
        CannotEdit: it is not one of the program's files.
    """
    for site in sites:
        outermost = site.places[-1] if site.places else None
        if outermost is not None and outermost.path in source.draft.files:
            return outermost.path
    raise CannotEdit("no file of the program was seen to run")


def summed_up(notes: list[str], already: str, safety: Safety = Safety.SAFE) -> Rewrite:
    """Return what came of a rewrite that changes what is not yet so."""
    return Edited(tuple(notes), safety) if notes else AlreadySo(already)


def launched_with(environment: Mapping[str, str]) -> Edited:
    """Return the outcome of what no source can set in time: variables that libraries read when they are loaded."""
    return Edited(environment=dict(environment))


def not_observed(what: str, snippet: str) -> Refused:
    """Return the refusal where the observed run never came by such a place."""
    return Refused(f"the observed run shows no {what}", snippet)
