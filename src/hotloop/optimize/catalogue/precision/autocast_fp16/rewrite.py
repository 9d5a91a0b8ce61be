"""The rewrite of autocast_fp16: autocast around the forwards, and a GradScaler through backward, clipping and step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from hotloop.model.sites import Place, SiteKind, Sites
from hotloop.optimize.catalogue.precision.autocast_fp16.gradient_uses import first_use_of_gradients
from hotloop.optimize.catalogue.precision.autocast_fp16.scaler_state import keep_state, state_uses
from hotloop.optimize.reduced_precision.autocast_rewrite import rewrite_forwards
from hotloop.source.calls import code
from hotloop.source.draft import Editor
from hotloop.source.imports import last_import, meaning, module_name
from hotloop.source.outcome import AlreadySo, CannotEdit, Edited, Refused, Rewrite
from hotloop.source.scopes import sees
from hotloop.source.statements import insert_after, insert_before, line_of

_NAMES = ("scaler", "grad_scaler")
_RETAINING = frozenset({"retain_graph", "inputs"})
"""Keywords of `backward` beside which a scaled loss is right."""


def rewrite_with_scaler(source: Editor, sites: Sites) -> Rewrite:
    """Put forwards under float16 autocast and scale the gradients.

    Raises:
        CannotEdit: with what makes a scaler wrong, or impossible, in this program.
    """
    if _is_scaled(source, sites):
        forwards = rewrite_forwards(source, sites, "float16")
        return AlreadySo("gradients are scaled") if isinstance(forwards, AlreadySo) else forwards
    step = _step_to_scale(source, sites)
    _check_gradients(source, sites, step)
    scaler = _scaler_for(source, sites, step)
    use = first_use_of_gradients(source, sites, step.place)
    forwards = rewrite_forwards(source, sites, "float16")
    if isinstance(forwards, Refused):
        return forwards
    notes = forwards.notes if isinstance(forwards, Edited) else ()
    notes += tuple(_scale_losses(source, sites, scaler.name))
    if use is not None:
        insert_before(source, step.place.path, use, f"{scaler.name}.unscale_({step.optimizer})")
        notes += (f"{step.place.path}: gradients are unscaled before they are clipped or read",)
    notes += (_scale_step(source, step, scaler.name),)
    notes += tuple(keep_state(source, step.place.path, step.optimizer, scaler.name))
    return Edited((*notes, _make(source, scaler)))


@dataclass(frozen=True)
class _Step:
    """The one statement that steps the program's one optimizer.

    Attributes:
        place: where it stands.
        optimizer: as the program names it there: `self.optimizer`.
    """

    place: Place
    optimizer: str


@dataclass(frozen=True)
class _Scaler:
    """The scaler to make.

    Attributes:
        name: that nothing else in the program has.
        path: of the file.
        behind: the optimizer's construction; None: at the top of the file, behind the imports.
        device: type.
    """

    name: str
    path: str
    behind: Place | None
    device: str


def _is_scaled(source: Editor, sites: Sites) -> bool:
    """Whether each observed backward is that of a loss that a scaler gives."""
    return bool(sites.of(SiteKind.BACKWARD)) and all(
        ".scale(" in code(source.call(site.places[0])) for site in sites.of(SiteKind.BACKWARD)
    )


def _step_to_scale(source: Editor, sites: Sites) -> _Step:
    if sites.of(SiteKind.SCALER) or _calls(source, "GradScaler"):
        raise CannotEdit("the program makes a GradScaler of its own, and not every loss goes through it")
    if len({site.slot for site in sites.of(SiteKind.OPTIMIZER)}) > 1:
        raise CannotEdit("the program has several optimizers: which loss belongs to which cannot be told")
    steps = list(dict.fromkeys(site.places[0] for site in sites.of(SiteKind.STEP) if site.places))
    if len(steps) != 1:
        raise CannotEdit(f"an optimizer is stepped in {len(steps)} places of the program, and one is needed")
    call = source.call(steps[0])
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "step" or call.args:
        raise CannotEdit(f"{_where(source, steps[0])}: a scaler cannot step with a closure")
    if not isinstance(source.file(steps[0].path).parent(call), cst.Expr):
        raise CannotEdit(f"{_where(source, steps[0])}: the step is not a statement of its own")
    step = _Step(steps[0], code(call.func.value))
    _check_all_seen(source, f"{step.optimizer}.step", [step.place], "steps the optimizer")
    return step


def _check_gradients(source: Editor, sites: Sites, step: _Step) -> None:
    """Every backward has to be one that was seen: one that is left out would add gradients that are not scaled."""
    if _calls(source, "autograd.grad"):
        raise CannotEdit("the program computes gradients by autograd.grad, which a scaler does not see")
    backwards = [site.places[0] for site in sites.of(SiteKind.BACKWARD)]
    if not backwards:
        raise CannotEdit("the observed run shows no backward of the program's own code")
    for place in backwards:
        call = source.call(place)
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "backward":
            raise CannotEdit(f"{_where(source, place)}: the backward is not a loss's own")
        if any(arg.keyword is None or arg.keyword.value not in _RETAINING for arg in call.args):
            raise CannotEdit(f"{_where(source, place)}: the backward has arguments that a scale would change")
        if place.path != step.place.path:
            raise CannotEdit(
                f"{place.path} has the backward and {step.place.path} the step: both need the scaler"
            )
    _check_all_seen(source, "backward", backwards, "goes backward")


def _check_all_seen(source: Editor, name: str, seen: Sequence[Place], does: str) -> None:
    known = [source.call(place) for place in seen]
    for path, call in _calls(source, name):
        if not any(call is each for each in known):
            line = source.file(path).line(call)
            raise CannotEdit(f"{path}:{line} {does} too, and the observed run did not come by")


def _calls(source: Editor, name: str) -> list[tuple[str, cst.Call]]:
    """Return the calls of a function or method whose written name ends so."""
    return [
        (path, call)
        for path, file in source.draft.files.items()
        for call in file.all(cst.Call)
        if f".{meaning(file, call.func) or code(call.func)}".endswith(f".{name}")
    ]


def _scaler_for(source: Editor, sites: Sites, step: _Step) -> _Scaler:
    """Return a name and a place from which backward, step and checkpoints see the scaler."""
    written = [name.value for file in source.draft.files.values() for name in file.all(cst.Name)]
    name = next((name for name in _NAMES if name not in written), None)
    if name is None:
        raise CannotEdit(f"the program gives the names {' and '.join(_NAMES)} to something else")
    path = step.place.path
    backwards = (source.call(site.places[0]) for site in sites.of(SiteKind.BACKWARD))
    uses = [source.call(step.place), *backwards, *state_uses(source, path, step.optimizer)]
    made = next((site.construction for site in sites.of(SiteKind.OPTIMIZER)), None)
    if made is not None and made.path == path and _stays(source, made, uses):
        return _Scaler(name, path, made, sites.device)
    return _Scaler(name, path, None, sites.device)


def _stays(source: Editor, made: Place, uses: Sequence[cst.CSTNode]) -> bool:
    """Whether a name that is given behind a construction is known wherever it is used."""
    file = source.file(made.path)
    try:
        line = line_of(file, source.call(made))
    except CannotEdit:
        return False
    return isinstance(line, cst.SimpleStatementLine) and all(sees(file, use, line) for use in uses)


def _scale_losses(source: Editor, sites: Sites, scaler: str) -> Iterator[str]:
    for place in dict.fromkeys(site.places[0] for site in sites.of(SiteKind.BACKWARD)):
        function = source.call(place).func
        assert isinstance(function, cst.Attribute)
        source.change(place.path, function.value, lambda loss: _called(f"{scaler}.scale", loss))
        yield f"{_where(source, place)}: {scaler}.scale({code(function.value)}).backward()"


def _scale_step(source: Editor, step: _Step, scaler: str) -> str:
    path, call = step.place.path, source.call(step.place)
    assert isinstance(call.func, cst.Attribute)
    optimizer = call.func.value
    source.change(path, call, lambda _: _called(f"{scaler}.step", optimizer))
    line = line_of(source.file(path), source.call(step.place))
    insert_after(source, path, line, f"{scaler}.update()")
    return f"{_where(source, step.place)}: {scaler}.step({step.optimizer}), then {scaler}.update()"


def _make(source: Editor, scaler: _Scaler) -> str:
    text = f'{scaler.name} = {module_name(source, scaler.path, "torch")}.amp.GradScaler("{scaler.device}")'
    file = source.file(scaler.path)
    if scaler.behind is None:
        line: cst.BaseStatement | None = last_import(file)
    else:
        line = line_of(file, source.call(scaler.behind))
    assert isinstance(line, cst.SimpleStatementLine), "a file that knows torch imports it"
    insert_after(source, scaler.path, line, text, apart=scaler.behind is None)
    return f"{scaler.path}: {text}"


def _called(function: str, value: cst.BaseExpression) -> cst.Call:
    called = cst.parse_expression(f"{function}(_)")
    assert isinstance(called, cst.Call)
    return called.with_changes(args=[cst.Arg(value)])


def _where(source: Editor, place: Place) -> str:
    return f"{place.path}:{source.line(place)}"
