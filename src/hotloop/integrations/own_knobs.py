"""The rewrite of a step where the program's framework has a knob for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import libcst as cst

from hotloop.integrations.accelerate import ACCELERATE
from hotloop.integrations.framework import Framework
from hotloop.integrations.launcher_file import launcher_setting
from hotloop.integrations.lightning import FABRIC, LIGHTNING
from hotloop.integrations.transformers import TRANSFORMERS
from hotloop.model.option_value import OptionValue
from hotloop.model.safety import Safety
from hotloop.model.sites import Place, Site, SiteKind, Sites
from hotloop.source.calls import argument
from hotloop.source.draft import Editor
from hotloop.source.imports import meaning, module_name
from hotloop.source.keywords import Changes, set_keyword
from hotloop.source.option import Option
from hotloop.source.options import current, set_option
from hotloop.source.outcome import AlreadySo, Edited, Rewrite

_Made = tuple[str, Callable[[], cst.Call]]
"""A file, and what returns the call in it that sets up the framework, as it stands now."""
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
        made = _observed(source, framework, sites) or _read(source, framework)
        parsed = not made and any(_calls(source, framework.parsers))
        if not (made or parsed) or not framework.turns(name, params, sites):
            continue
        keywords = framework.knobs[name](params)
        no_gpu = framework.on_cpu.get(name) if sites.device == "cpu" else None
        if parsed:
            told = keywords if no_gpu is None else {**keywords, no_gpu: "True"}
            return Edited(environment=environment, options=tuple(_options(told)), launched=True)
        return _set(source, made, framework, keywords, no_gpu, environment)
    return None


def _observed(source: Editor, framework: Framework, sites: Sites) -> list[_Made]:
    """Return the calls that were seen to set up the framework; none where they are not the program's own to edit."""
    return [
        (place.path, partial(source.call, place))
        for site in sites.of(SiteKind.TRAINER)
        if site.callee in framework.classes and site.direct
        for place in _set_up_at(source, site)
    ]


def _set_up_at(source: Editor, site: Site) -> Iterator[Place]:
    """Yield the place whose keywords count: in an heir's own `__init__` that is where it calls the one above."""
    inner, outer = site.places[: site.num_own], site.places[site.num_own :]
    for place in (*inner[-1:], *outer[:1]):
        # The `__init__` that Python writes for a dataclass stands in no file.
        if isinstance(source.draft.marks.get(place), cst.Call):
            yield place
            return


def _read(source: Editor, framework: Framework) -> list[_Made]:
    """Return the calls that read as if they set up the framework."""
    paths = [path for path, _ in _calls(source, framework.classes)]
    return [(path, partial(_call, source, framework, number)) for number, path in enumerate(paths)]


def _set(
    source: Editor,
    made: Sequence[_Made],
    framework: Framework,
    keywords: Mapping[str, str],
    no_gpu: str | None,
    environment: Mapping[str, str],
) -> Rewrite:
    """Set the keywords wherever the framework is set up; which of several places is meant is for a person to say.

    Args:
        source: the user's files.
        made: where it is set up.
        framework: the framework.
        keywords: with the values that they get.
        no_gpu: a keyword that says whether there is a GPU, set where the program does not; None: it is not needed.
        environment: variables that the step wants beside it.
    """
    changes = Changes(safety=Safety.SAFE if len(made) == 1 else Safety.DISPLAY)
    for path, call in made:
        for keyword, value in keywords.items():
            launched = launcher_setting(source, framework, call(), keyword)
            changes += (
                set_keyword(source, path, call, keyword, value)
                if launched is None
                else _set_launched(source, launched, value)
            )
        if no_gpu is not None and argument(call(), no_gpu) is None:
            torch = module_name(source, path, "torch")
            changes += set_keyword(source, path, call, no_gpu, f"not {torch}.cuda.is_available()")
    if not changes.notes and not environment:
        return AlreadySo(f"{framework.name} has {_by_hand(keywords)}")
    return Edited(changes.notes, changes.safety, environment, changes.options)


def _set_launched(source: Editor, launched: Option, value: str) -> Changes:
    if current(launched) == value:
        return Changes()
    note = set_option(source, launched, value)
    return Changes((note,), options=(OptionValue(launched.flags, value.strip('"')),))


def _call(source: Editor, framework: Framework, number: int) -> cst.Call:
    return [call for _, call in _calls(source, framework.classes)][number]


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
