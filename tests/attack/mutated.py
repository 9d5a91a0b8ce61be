"""Hostile files by the hundred: good ones, bent at random, and the shapes that ended us before."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

_NASTY = (
    b"[" * 5000,
    b"(" * 3000,
    b"9" * 5000,
    b"\x00",
    b"\xff\xfe",
    b"\x1b[31m",
    "\u202e".encode(),
    b"\n::error::x\n",
    b'"' * 300,
    b"{}" * 2000,
    b"1e999",
    b"-1",
    b"null",
    b"true",
    b"[/q]",
    b"\\",
)


_HOSTILE_TEXT = "\x1b[31m[/q]\u202e\n::error::x"
_WRONG: dict[type, tuple[Any, ...]] = {
    float: (0.0, -1.0, 1e-308, -1e308, float("nan"), float("inf")),
    int: (0, -1, 10**9, 2**62),
    str: ("", _HOSTILE_TEXT, "9" * 5000, "<script>", "../../etc"),
    bytes: (b"", b"\xff" * 7, b"\x00" * 4096),
    bool: (True, False),
}


def bent_values(good: Any, num: int, *, seed: int) -> Iterator[Any]:
    """Yield so many values made from a good one: absurd numbers and texts, lists that are empty or too long.

    One in five places gets something of another kind.
    """
    rng = random.Random(seed)
    for _ in range(num):
        value = copy.deepcopy(good)
        for _ in range(rng.randint(1, 12)):
            _bend(value, rng)
        yield value


def _bend(value: Any, rng: random.Random) -> None:
    """Go down to a random place, and change what is there."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        there = value[key]
        if isinstance(there, (dict, list)) and there and rng.random() < 0.97:
            value = there
            continue
        kind = type(there) if type(there) in _WRONG and rng.random() < 0.95 else rng.choice(list(_WRONG))
        if isinstance(there, list) or (isinstance(value, list) and rng.random() < 0.3):
            value[key] = [] if isinstance(there, list) and rng.random() < 0.5 else there
            if isinstance(value, list):
                value.extend(copy.deepcopy(there) for _ in range(rng.randint(1, 50)))
        else:
            value[key] = rng.choice(_WRONG[kind])
        return


def bent(good: bytes, num: int, *, seed: int) -> Iterator[bytes]:
    """Yield so many files made from a good one: cut, repeated, shuffled, with bytes and nasty pieces put in."""
    rng = random.Random(seed)
    for _ in range(num):
        content = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(content) + 1)
            what = rng.randrange(6)
            if what == 0:
                del content[at : at + rng.randint(1, 200)]
            elif what == 1:
                content[at:at] = rng.choice(_NASTY)
            elif what == 2:
                content[at : at + 4] = rng.choice(_NASTY)
            elif what == 3:
                content[at:at] = rng.randbytes(rng.randint(1, 40))
            elif what == 4:
                other = rng.randrange(len(content) + 1)
                content[at:at] = content[other : other + rng.randint(1, 300)]
            else:
                for _ in range(20):
                    if content:
                        content[rng.randrange(len(content))] = rng.randrange(256)
        yield bytes(content)
