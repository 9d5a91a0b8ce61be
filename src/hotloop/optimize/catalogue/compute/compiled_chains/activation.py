"""The functions of a running model with chains in them, each chain compiled by itself."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from hotloop.optimize.catalogue.compute.compiled_chains.kernels import CompiledChain
from hotloop.optimize.catalogue.compute.compiled_chains.pattern import Chain, chains
from hotloop.optimize.comparison.function_code import (
    OURS,
    changed_code,
    functions_of,
    place_of,
    source_of,
    why_unchanged,
)
from hotloop.optimize.evidence import evidence
from hotloop.probe.activation.knob import Knob

CALL = OURS
"""By this and its own name a changed function knows a chain; it stands in the globals of the user's module."""


@dataclass(frozen=True)
class _Changed:
    """A function, and its code with calls of chains."""

    function: FunctionType
    own: CodeType
    code: CodeType
    place: str
    chains: tuple[CompiledChain, ...]


class ChainSwap(Knob):
    """Exchanges the code of functions with chains in them.

    In the first training forward of a model each chain is run both ways on what it was just given.

    Args:
        at_once: from the second training forward on; else when it is switched.
        backend: of torch.compile.
    """

    settle_steps = 2
    nothing = "no training forward ran a chain of pointwise operations"

    def __init__(self, *, at_once: bool, backend: str = "inductor") -> None:
        self._is_on = at_once
        self._backend = backend
        self._functions: dict[int, _Changed | None] = {}
        self._made: dict[tuple[str, int], CompiledChain] = {}
        self._left: list[str] = []
        self._proving = False

    def on_root(self, module: Any) -> None:
        """Put the chains into the functions that the model's modules run; they run as they are meanwhile."""
        read: dict[str, dict[str, list[Chain]]] = {}
        for function in {
            id(one): one for part in module.modules() for one in functions_of(type(part))
        }.values():
            if id(function) not in self._functions:
                self._functions[id(function)] = self._changed(function, read)
        for each in self._known():
            each.function.__code__ = each.code
        self._proving = True

    def on_forward_inputs(
        self,
        module: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[Any, Any]:
        """Go on with what agreed in an earlier forward."""
        if self._is_on:
            self._run_what_agreed()
        return args, kwargs

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """End the comparison; what agreed runs from the next forward on: parts of this one may be computed again."""
        if self._proving:
            self._proving = False
            self._put()
        return output

    def switch(self, on: bool) -> None:
        """Run what agreed, or the program's own functions."""
        self._is_on = on
        self._put()
        if on:
            self._run_what_agreed()

    def effect(self) -> tuple[bool, str]:
        """Return whether compiled chains ran, and how near they came to the program's own."""
        ran = [each for each in self._known() if any(one.num_calls for one in each.chains)]
        left = [f"{each.place}: {one.left}" for each in self._known() for one in each.chains if one.left]
        if not ran:
            return False, evidence("", [*left, *self._left], self.nothing)
        acted = {id(one): one for each in ran for one in each.chains if one.num_calls}.values()
        num_calls = sum(one.num_calls for one in acted)
        said = f"{', '.join(each.place for each in ran)}: {len(acted)} kernels, {num_calls} calls"
        apart = max(one.apart for one in acted)
        said += f", outputs and gradients within {apart:.1e} of the program's own"
        return True, evidence(said, [*left, *self._left])

    def _put(self) -> None:
        for each in self._known():
            each.function.__code__ = each.code if self._is_on else each.own
            for one in each.chains:
                one.is_on = False

    def _run_what_agreed(self) -> None:
        for one in self._made.values():
            one.is_on = bool(one.agrees)

    def _known(self) -> list[_Changed]:
        return [each for each in self._functions.values() if each is not None]

    def _changed(self, function: FunctionType, read: dict[str, dict[str, list[Chain]]]) -> _Changed | None:
        path = function.__code__.co_filename
        if path not in read:
            read[path] = {}
            for each in chains(source_of(function)):
                read[path].setdefault(each.function, []).append(each)
        found = read[path].get(function.__qualname__)
        if not found:
            return None
        place = f"{function.__qualname__} (line {found[0].line})"
        own = _names_of_its_own(function)
        if meant_otherwise := sorted({name for one in found for name in one.names & own}):
            self._left.append(f"{place}: {', '.join(meant_otherwise)} is a name of its own there")
            found = [one for one in found if not one.names & own]
        if not found:
            return None
        calls = {place_of(one.expression): f"{CALL}{one.name}({', '.join(one.arguments)})" for one in found}
        code = changed_code(function, calls)
        if code is None:
            self._left.append(f"{place}: {why_unchanged(function)}")
            return None
        made = [self._chain(one, function.__globals__) for one in {one.name: one for one in found}.values()]
        return _Changed(function, function.__code__, code, place, tuple(made))

    def _chain(self, chain: Chain, names: dict[str, Any]) -> CompiledChain:
        """Return a chain, the same in all functions of a module."""
        key = (chain.name, id(names))
        if key not in self._made:
            plain = eval(chain.text, names)
            self._made[key] = names[CALL + chain.name] = CompiledChain(plain, self._backend)
        return self._made[key]


def _names_of_its_own(function: FunctionType) -> frozenset[str]:
    """Return the names that mean something else in a function than in its module."""
    code = function.__code__
    return frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
