"""The functions of a running model that write attention out, and their code with the call in its place."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from hotloop.optimize.catalogue.compute.flash_attention.kernel import chosen_kernel, fused_attention
from hotloop.optimize.comparison.exchange import Exchange
from hotloop.optimize.comparison.function_code import (
    OURS,
    changed_code,
    functions_of,
    place_of,
    source_of,
    why_unchanged,
)
from hotloop.patterns.attention.pattern import Attention, attentions

CALL = f"{OURS}attention"
"""By this name a changed function knows what it calls; it stands in the globals of the user's module."""
COUNTED_CALLS = 64
"""Calls that are counted; then the functions call torch's own, with no frame of ours between."""


class Written(Exchange):
    """A function that writes attention out.

    Args:
        function: of the program.
        found: what it writes.
        fused: its code with the calls.
    """

    def __init__(self, function: FunctionType, found: list[Attention], fused: CodeType) -> None:
        super().__init__(f"{function.__qualname__} (line {found[0].line})")
        self._function = function
        self._own = function.__code__
        self._fused = fused
        self.kernel = ""
        """That torch chose in the first call; empty: there was none."""

    def put(self, on: bool) -> None:
        """Let the function run the calls, or its own code again."""
        if on:
            counts = self.num_calls < COUNTED_CALLS
            self._function.__globals__[CALL] = self._counted if counts else fused_attention()
        self._function.__code__ = self._fused if on else self._own

    def _counted(self, *args: Any, **kwargs: Any) -> Any:
        """Call torch's function, note which kernel it chooses, and give way."""
        self.num_calls += 1
        if not self.kernel:
            self.kernel = chosen_kernel(*args, **kwargs)
        if self.num_calls >= COUNTED_CALLS:
            self._function.__globals__[CALL] = fused_attention()
        return fused_attention()(*args, **kwargs)


def written_by(root: Any) -> tuple[list[Written], list[str]]:
    """Return the functions of a model that write attention out, and why others are left."""
    found: dict[int, Written] = {}
    left: dict[str, None] = {}
    reads: dict[str, list[Attention]] = {}
    for module in root.modules():
        for function in functions_of(type(module)):
            if id(function) not in found:
                written = _read(function, reads, left)
                if written is None:
                    continue
                found[id(function)] = written
            found[id(function)].modules.append(module)
    return list(found.values()), list(left)


def _read(function: FunctionType, reads: dict[str, list[Attention]], left: dict[str, None]) -> Written | None:
    path = function.__code__.co_filename
    if path not in reads:
        text = source_of(function)
        reads[path] = attentions(text) if "softmax" in text.lower() else []
    here = [each for each in reads[path] if each.function == function.__qualname__]
    for each in here:
        if each.refused:
            left[f"{each.function} (line {each.line}): {each.refused}"] = None
    usable = [each for each in here if not each.refused]
    if not usable:
        return None
    calls = {place_of(each.product): f"{CALL}({each.arguments}){each.turn}" for each in usable}
    gone = {(line.lineno, line.col_offset) for each in usable for line in each.gone}
    fused = changed_code(function, calls, gone)
    if fused is None:
        left[f"{function.__qualname__} (line {usable[0].line}): {why_unchanged(function)}"] = None
        return None
    return Written(function, usable, fused)
