"""Which answer to a question goes on, where the other one ends in an error.

Programs check their values: `assert x.max() <= 1`, `if (variance < 0).any(): raise`. Values that nobody has are
taken to pass. What the answer leads to is read from the bytecode of the function that asks.
"""

from __future__ import annotations

import dis
import sys
from bisect import bisect_right
from types import CodeType, FrameType

_BETWEEN = ("/hotloop/probe/", "/torch/_compile.py", "/torch/_dynamo/", "/torch/utils/_")
"""Files of the frames between a question and the world that answers."""
_PASSED = ("TO_BOOL", "CACHE", "NOP", "EXTENDED_ARG", "UNARY_NOT")
"""Instructions between a call and the jump that it decides."""


def passing_answer() -> bool | None:
    """Return what the function that asks now must hear so as not to raise; None: it raises either way, or neither."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and any(part in frame.f_code.co_filename for part in _BETWEEN):
        frame = frame.f_back
    return None if frame is None else answer_at(frame.f_code, frame.f_lasti)


def answer_at(code: CodeType, offset: int) -> bool | None:
    """Return what the instruction at an offset must give for the code not to raise; None: that decides nothing."""
    instructions = list(dis.get_instructions(code))
    places = {each.offset: place for place, each in enumerate(instructions)}
    asks = place = (
        bisect_right(instructions, offset, key=lambda each: each.offset) - 1
    )  # a call may be in its cache
    negated = False
    while not _is_branch(instructions[place]):
        name = instructions[place].opname
        if place != asks and name not in _PASSED:
            return None
        negated ^= name == "UNARY_NOT"
        place += 1
    branch = instructions[place]
    jumps = _raises(instructions, places, places[branch.argval])
    if jumps == _raises(instructions, places, place + 1):
        return None
    jumps_if = "IF_TRUE" in branch.opname
    return jumps_if ^ jumps ^ negated


def _is_branch(instruction: dis.Instruction) -> bool:
    return "JUMP" in instruction.opname and (
        "IF_TRUE" in instruction.opname or "IF_FALSE" in instruction.opname
    )


def _raises(instructions: list[dis.Instruction], places: dict[int, int], place: int) -> bool:
    """Whether what follows raises before it decides, repeats or returns anything."""
    for _ in instructions:
        name = instructions[place].opname
        if name.startswith("RAISE"):
            return True
        if name.startswith(("RETURN", "FOR_ITER")) or name.endswith("RERAISE") or "_IF_" in name:
            return False
        place = places[instructions[place].argval] if name.startswith("JUMP") else place + 1
    return False
