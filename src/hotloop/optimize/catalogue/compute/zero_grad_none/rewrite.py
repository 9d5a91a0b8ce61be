"""`zero_grad(set_to_none=False)` without its argument."""

from __future__ import annotations

import libcst as cst

from hotloop.optimize.rewriting.outcomes import none_of_its_own
from hotloop.source.calls import argument, code
from hotloop.source.draft import Editor
from hotloop.source.outcome import Edited, Refused, Rewrite


def let_gradients_go(source: Editor) -> Rewrite:
    """Take the argument away from every call that says False; one that decides by itself is refused."""
    notes: list[str] = []
    seen: list[str] = []
    for path in source.draft.files:
        while True:
            call = next((each for each in _calls(source, path) if _says(each) == "False"), None)
            if call is None:
                break
            notes.append(f"{path}:{source.file(path).line(call)}: zero_grad lets gradients go")
            source.change(path, call, lambda call: call.with_changes(args=[]))
        seen += [_says(each) for each in _calls(source, path)]
    if notes:
        return Edited(tuple(notes))
    decided = [each for each in seen if each not in {"", "True"}]
    if decided:
        return Refused(f"the program decides it by itself: {decided[0]}")
    return none_of_its_own("zero_grad(set_to_none=False)", "optimizer.zero_grad()")


def _calls(source: Editor, path: str) -> list[cst.Call]:
    return [
        call
        for call in source.file(path).all(cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "zero_grad"
    ]


def _says(call: cst.Call) -> str:
    given = argument(call, "set_to_none", 0)
    return "" if given is None else code(given.value)
