"""Hostile files by the hundred: good ones, bent at random, and the shapes that ended us before."""

from __future__ import annotations

import random
from collections.abc import Iterator

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
