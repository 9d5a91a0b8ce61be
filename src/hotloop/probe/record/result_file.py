"""One result of an instrument as a JSON file, whole or not at all; written with the standard library alone."""

from __future__ import annotations

import json
from array import array
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def result_path(folder: Path, name: str, pid: int) -> Path:
    """Return where the result of an instrument in a process is."""
    return folder / f"deep-{name}-{pid}.json"


def write_result_file(path: Path, result: dict[str, Any]) -> None:
    """Write a result next to its place, then move it there.

    Args:
        path: as `result_path` says.
        result: builtin values that JSON has; long rows of integers as `packed` makes them.
    """
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps(result), encoding="ascii")
    scratch.replace(path)


def packed(code: str, numbers: Iterable[int]) -> str:
    """Return a long row of 64-bit integers as text: base64 of their bytes.

    Args:
        code: of `array`: `q` with a sign, `Q` without.
        numbers: the row.
    """
    return b64encode(array(code, numbers).tobytes()).decode("ascii")
