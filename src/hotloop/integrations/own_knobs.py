"""The rewrite of a step where the program's framework has a knob for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import libcst as cst

from hotloop.integrations.accelerate import ACCELERATE
from hotloop.integrations.framework import Framework
from hotloop.integrations.lightning import FABRIC, LIGHTNING
from hotloop.integrations.transformers import TRANSFORMERS
from hotloop.source.draft import Editor
from hotloop.source.imports import meaning
from hotloop.source.keywords import Changes, set_keyword
from hotloop.source.outcome import AlreadySo, Edited, Refused, Rewrite

FRAMEWORKS = (LIGHTNING, FABRIC, TRANSFORMERS, ACCELERATE)


def turn_own_knob(
    source: Editor, name: str, params: Mapping[str, Any], environment: Mapping[str, str]
) -> Rewrite | None:
    """Return what came of turning the framework's knob; None: no framework of the program has one for this step.

    Args:
        source: the user's files.
        name: of the optimization.
        params: of the plan's step.
        environment: variables that the step wants beside it.

    Raises:
        CannotEdit: a keyword may be hidden in `*args`.
    """
    for framework in FRAMEWORKS:
        if name not in framework.knobs:
            continue
        keywords = framework.knobs[name](params)
        made = list(_calls(source, framework.classes))
        if not made and any(_calls(source, framework.parsers)):
            return Edited(environment=environment, options=tuple(_words(keywords)))
        if len(made) > 1:
            where = ", ".join(f"{path}:{source.file(path).line(call)}" for path, call in made)
            return Refused(f"{framework.name} is set up in {len(made)} places ({where})", _by_hand(keywords))
        if made:
            return _set(source, made[0][0], framework, keywords, environment)
    return None


def _set(
    source: Editor,
    path: str,
    framework: Framework,
    keywords: Mapping[str, str],
    environment: Mapping[str, str],
) -> Rewrite:
    changes = Changes()
    for keyword, value in keywords.items():
        changes += set_keyword(source, path, lambda: _call(source, framework), keyword, value)
    if not changes.notes and not environment:
        return AlreadySo(f"{framework.name} has {_by_hand(keywords)}")
    return Edited(changes.notes, changes.safety, environment, changes.options)


def _call(source: Editor, framework: Framework) -> cst.Call:
    return next(call for _, call in _calls(source, framework.classes))


def _calls(source: Editor, names: frozenset[str]) -> Iterator[tuple[str, cst.Call]]:
    """Return the calls of one of these, as each file knows it by its imports."""
    for path, file in source.draft.files.items():
        for call in file.all(cst.Call):
            if names and meaning(file, call.func) in names:
                yield path, call


def _words(keywords: Mapping[str, str]) -> Iterator[str]:
    for keyword, value in keywords.items():
        yield f"--{keyword}"
        yield value.strip('"')


def _by_hand(keywords: Mapping[str, str]) -> str:
    return ", ".join(f"{keyword}={value}" for keyword, value in keywords.items())
