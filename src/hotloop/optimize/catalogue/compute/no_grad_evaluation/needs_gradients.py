"""Why a loop that evaluates may not go without a graph: something in it, or behind its function, may train."""

from __future__ import annotations

import builtins
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import libcst as cst

from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method
from hotloop.source.calls import code
from hotloop.source.source_file import below

_DIFFERENTIATES = re.compile(
    r"backward|autograd|\bgrad\(|enable_grad|jacobian|hessian|\bjac(rev|fwd)\b|\b[vj][jv]p\b"
)
_STEPS = ".step("
"""Of an optimizer in what the loop calls; a caller of the whole may step a scheduler beside it."""
_SOUNDS_LIKE_TRAINING = re.compile(
    r"train|fit\b|fit_|optim|learn|adapt|attack|perturb|advers|saliency|gradient"
)
_SOUNDS_LIKE_MODEL = re.compile(r"loss|crit|model|net")
_OF_MODULES = ("forward", "__call__")


class Callees:
    """The functions of all files of a program, by name: which one a call runs is not told apart."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = programs
        self._functions: dict[str, list[cst.FunctionDef]] = defaultdict(list)
        self._classes: set[str] = set()
        for program in programs:
            for function in program.file.all(cst.FunctionDef):
                self._functions[function.name.value].append(function)
            self._classes |= {each.name.value for each in program.file.all(cst.ClassDef)}

    def reason(self, program: Program, loop: cst.For | cst.While, model: str) -> str | None:
        """Return why gradients may be needed in a loop; None: they are not.

        Args:
            program: the file.
            loop: it runs a model in evaluation mode.
            model: the name of that model.
        """
        for call in program.file.under(loop, cst.Call):
            name = dotted(call.func) or ""
            if name == model:
                continue
            if _SOUNDS_LIKE_TRAINING.search(name) or not self._is_known(program, call):
                return f"{name or 'what it calls'} may need gradients"
        for function in self._reached(loop):
            text = code(function.body)
            if _DIFFERENTIATES.search(text) or _STEPS in text:
                return f"{function.name.value} differentiates"
        return self._reason_behind(program, loop)

    def _is_known(self, program: Program, call: cst.Call) -> bool:
        """Whether a variable that is called is a model or a loss; it may be an attack that differentiates."""
        if not isinstance(call.func, cst.Name):
            return True
        name = call.func.value
        if name in self._functions or name in self._classes or hasattr(builtins, name):
            return True
        kind = program.values.kind(call.func)
        return bool(
            program.names.of(call.func)
            or kind in {Kind.MODULE, Kind.LAYER}
            or _SOUNDS_LIKE_MODEL.search(name.lower())
        )

    def _reached(self, node: cst.CSTNode) -> list[cst.FunctionDef]:
        """Return the program's own functions that may run in a statement, through one another, too."""
        found: list[cst.FunctionDef] = []
        names: set[str] = set()
        todo = [node]
        while todo:
            for name in set(self._called(todo.pop())) - names:
                names.add(name)
                functions = self._functions.get(name, [])
                found += functions
                todo += functions
        return found

    def _called(self, node: cst.CSTNode) -> Iterator[str]:
        """Yield the names of functions that a node may call; what is no function of the program may be a module."""
        for call in (each for each in below(node) if isinstance(each, cst.Call)):
            name = (dotted(call.func) or "").rpartition(".")[2]
            yield name
            if name in self._classes:
                yield "__init__"
            elif name not in self._functions:
                yield from _OF_MODULES

    def _reason_behind(self, program: Program, loop: cst.CSTNode) -> str | None:
        """Return whether a caller of the loop's function may differentiate what that returns."""
        function = program.file.enclosing(loop, cst.FunctionDef)
        if function is None or not _gives_tensors(program, function):
            return None
        for other in self._programs:
            for call in other.file.all(cst.Call):
                if (dotted(call.func) or "").rpartition(".")[2] != function.name.value:
                    continue
                if _DIFFERENTIATES.search(_text_around(other, call)):
                    return (
                        f"line {other.file.line(call)} may differentiate what {function.name.value} returns"
                    )
        return None


def _gives_tensors(program: Program, function: cst.FunctionDef) -> bool:
    """Whether a function may return or yield what has a graph."""
    if program.file.under(function.body, cst.Yield):
        return True
    returned = program.file.under(function.body, cst.Return)
    return not all(each.value is None or _is_plain(program, each.value) for each in returned)


def _is_plain(program: Program, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Tuple):
        return all(_is_plain(program, each.value) for each in value.elements)
    return method(value) in {"item", "tolist"} or program.values.kind(value) is Kind.PLAIN


def _text_around(program: Program, call: cst.Call) -> str:
    """Return the source of the function that calls, or of the statements outside of all functions."""
    function = program.file.enclosing(call, cst.FunctionDef)
    if function is not None:
        return code(function.body)
    outside = [
        each for each in program.file.module.body if not isinstance(each, (cst.FunctionDef, cst.ClassDef))
    ]
    return "\n".join(map(code, outside))
