"""The rewrite of a step where the program's framework has a knob for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import libcst as cst

from hotloop.integrations.accelerate import ACCELERATE
from hotloop.integrations.framework import Framework
from hotloop.integrations.lightning import FABRIC, LIGHTNING
from hotloop.integrations.transformers import TRANSFORMERS
from hotloop.model.option_value import OptionValue
from hotloop.model.sites import Sites
from hotloop.source.draft import Editor
from hotloop.source.imports import meaning
from hotloop.source.keywords import Changes, set_keyword
from hotloop.source.outcome import AlreadySo, Edited, Refused, Rewrite

FRAMEWORKS = (LIGHTNING, FABRIC, TRANSFORMERS, ACCELERATE)


def turn_own_knob(
    source: Editor, sites: Sites, name: str, params: Mapping[str, Any], environment: Mapping[str, str]
) -> Rewrite | None:
    """Return what came of turning the framework's knob; None: no framework of the program has one for this step.

    Args:
        source: the user's files.
        sites: of the observed run.
        name: of the optimization.
        params: of the plan's step.
        environment: variables that the step wants beside it.

    Raises:
        CannotEdit: a keyword may be hidden in `*args`, or the knob would do something else.
    """
    for framework in FRAMEWORKS:
        if name not in framework.knobs:
            continue
        made = list(_calls(source, framework.classes))
        parsed = not made and any(_calls(source, framework.parsers))
        if not (made or parsed) or not framework.turns(name, params, sites):
            continue
        keywords = framework.knobs[name](params)
        if parsed:
            return Edited(environment=environment, options=tuple(_options(keywords)))
        if len(made) > 1:
            where = ", ".join(f"{path}:{source.file(path).line(call)}" for path, call in made)
            return Refused(f"{framework.name} is set up in {len(made)} places ({where})", _by_hand(keywords))
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
    """Return the calls of one of these, as each file knows it by its imports, or of the program's own heirs of it."""
    if not names:
        return
    heirs = _heirs(source, names)
    for path, file in source.draft.files.items():
        for call in file.all(cst.Call):
            called = meaning(file, call.func)
            if called in names or called.rpartition(".")[2] in heirs:
                yield path, call


def _heirs(source: Editor, names: frozenset[str]) -> frozenset[str]:
    """Return the classes of the program that take what the framework's take: a dataclass with fields of its own."""
    return frozenset(
        cls.name.value
        for file in source.draft.files.values()
        for cls in file.all(cst.ClassDef)
        if any(meaning(file, base.value) in names for base in cls.bases) and not _constructs_itself(cls)
    )


def _constructs_itself(cls: cst.ClassDef) -> bool:
    return any(isinstance(each, cst.FunctionDef) and each.name.value == "__init__" for each in cls.body.body)


def _options(keywords: Mapping[str, str]) -> Iterator[OptionValue]:
    for keyword, value in keywords.items():
        yield OptionValue((f"--{keyword}",), value.strip('"'))


def _by_hand(keywords: Mapping[str, str]) -> str:
    return ", ".join(f"{keyword}={value}" for keyword, value in keywords.items())
