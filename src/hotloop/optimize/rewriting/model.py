"""Where the program has its model in hand: the statement behind which a line about it can stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from hotloop.model.sites import Place, Site, SiteKind, Sites
from hotloop.optimize.rewriting.outcomes import not_observed, summed_up
from hotloop.source.calls import code
from hotloop.source.draft import Editor
from hotloop.source.imports import meaning, module_name
from hotloop.source.outcome import CannotEdit, Rewrite
from hotloop.source.source_file import SourceFile
from hotloop.source.statements import insert_after, line_of

_SAME_MODULE = frozenset(
    {"to", "cuda", "cpu", "train", "eval", "float", "double", "half", "bfloat16", "requires_grad_", "apply"}
)
"""Methods of a module that return the module."""


class NamedModel:
    """A root module as the user's code names it.

    Args:
        place: of the call that gives the module.
        name: what it is assigned to: `model`, `self.net`.
        made: the whole expression that is assigned: `Net().to(device)`.
        line: the statement.
    """

    def __init__(
        self, place: Place, name: str, made: cst.BaseExpression, line: cst.SimpleStatementLine
    ) -> None:
        self.place = place
        self.name = name
        self.made = made
        self.line = line


def named_model(source: Editor, site: Site) -> NamedModel:
    """Return where a root module is first given a name.

    Raises:
        CannotEdit: it gets none that can be told from the source.
    """
    for place, is_module in _givers(source, site):
        found = _assignment(source.file(place.path), source.call(place))
        if found is None:
            continue
        name, made, line = found
        if is_module or _is_used_as_module(source, name):
            return NamedModel(place, name, made, line)
    raise CannotEdit(f"no statement gives the model ({site.callee.split('.')[-1]}) a name of its own")


def model_to_compile(source: Editor, site: Site) -> NamedModel:
    """Return where a root module is given a name, behind which `compile()` of torch can be called on it or in it.

    Raises:
        CannotEdit: `compile` is another method of its class, or of one in it; or it gets no name.
    """
    if "compile" in site.overrides:
        name = site.callee.rpartition(".")[2]
        raise CannotEdit(f"{name}, or a module in it, has a method `compile` of its own")
    return named_model(source, site)


def add_line(source: Editor, model: NamedModel, text: str) -> list[str]:
    """Put a statement behind the one that names the model; return a note, nothing where it stands there already."""
    file = source.file(model.place.path)
    if any(code(line) == text for line in file.all(cst.SimpleStatementLine)):
        return []
    insert_after(source, model.place.path, model.line, text)
    return [f"{model.place.path}:{source.line(model.place)}: {text}"]


def behind_the_models(
    source: Editor, sites: Sites, modules: Sequence[str], line: Callable[..., str], already: str
) -> Rewrite:
    """Put a statement behind each that names a root module.

    Args:
        source: the user's files.
        sites: of the observed run.
        modules: that the statement needs.
        line: returns the statement from the model's name and what the modules are called in that file.
        already: what to say where it stands there.

    Raises:
        CannotEdit: a model gets no name that can be told from the source.
    """
    models = sites.of(SiteKind.MODEL)
    if not models:
        return not_observed("construction of the model", line("model", *modules))
    notes: list[str] = []
    for site in models:
        model = named_model(source, site)
        names = [module_name(source, model.place.path, module) for module in modules]
        notes += add_line(source, model, line(model.name, *names))
    return summed_up(notes, already)


def add_loop(source: Editor, model: NamedModel, over: str, text: str) -> list[str]:
    """Put a loop over the model's blocks behind the statement that names it; a note, or nothing, as `add_line`."""
    file = source.file(model.place.path)
    head = f"for block in {over}:"
    if any(code(loop).strip().startswith(head) and text in code(loop) for loop in file.all(cst.For)):
        return []
    insert_after(source, model.place.path, model.line, f"{head}\n{file.module.default_indent}{text}\n")
    return [f"{model.place.path}:{source.line(model.place)}: {text} for each of {over}"]


def _givers(source: Editor, site: Site) -> Iterator[tuple[Place, bool]]:
    """Return the calls that give the module, innermost first, and whether that is sure."""
    sure = True
    for at, place in enumerate(site.places[site.num_own :]):
        if place.path not in source.draft.files:
            return
        call = source.call(place)
        file = source.file(place.path)
        named = meaning(file, call.func).split(".")[-1] == site.callee.split(".")[-1]
        constructs = named or (at == 0 and site.direct)
        yield place, constructs or (at > 0 and sure)
        # A function that returns what it has just made gives the module to whoever called it.
        sure = (constructs or (at > 0 and sure)) and _is_returned(file, call)


def _assignment(
    file: SourceFile, call: cst.Call
) -> tuple[str, cst.BaseExpression, cst.SimpleStatementLine] | None:
    """Return name, value and statement where the call's module is what is assigned."""
    made = _chain(file, call)
    small = file.parent(made)
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target: cst.BaseExpression = small.targets[0].target
    elif isinstance(small, cst.AnnAssign):
        target = small.target
    else:
        return None
    line = line_of(file, small)
    if not isinstance(target, (cst.Name, cst.Attribute)) or not isinstance(line, cst.SimpleStatementLine):
        return None
    return code(target), made, line


def _chain(file: SourceFile, call: cst.Call) -> cst.BaseExpression:
    """Return the longest chain of methods on the call that is still the same module: `Net().to(device).train()`."""
    made: cst.BaseExpression = call
    while True:
        attribute = file.parent(made)
        outer = file.parent(attribute) if attribute is not None else None
        if not (
            isinstance(attribute, cst.Attribute)
            and attribute.value is made
            and attribute.attr.value in _SAME_MODULE
            and isinstance(outer, cst.Call)
            and outer.func is attribute
        ):
            return made
        made = outer


def _is_returned(file: SourceFile, call: cst.Call) -> bool:
    return isinstance(file.parent(_chain(file, call)), cst.Return)


def _is_used_as_module(source: Editor, name: str) -> bool:
    """Whether the program does with the name what is done with modules alone."""
    written = [file.module.code for file in source.draft.files.values()]
    uses = (f"{name}.parameters()", f"{name}.train()", f"{name}.state_dict()", f"{name}.named_parameters()")
    return any(use in text for text in written for use in uses)
