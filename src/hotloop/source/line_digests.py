"""By what a line of a file is known again, whatever its indent."""

from __future__ import annotations

import hashlib

LENGTH = 12
"""Hexadecimal digits: among a million lines, two that differ agree once in 500 files."""


def line_digests(content: bytes) -> list[str]:
    """Return one digest for each line that is not blank."""
    lines = (line.strip() for line in content.split(b"\n"))
    return [hashlib.sha256(line).hexdigest()[:LENGTH] for line in lines if line]
