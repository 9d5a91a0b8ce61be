"""What the parts of a run's account are called."""

from __future__ import annotations

_NAMES = {
    "interpreter": "interpreter",
    "launcher": "launcher",
    "import": "imports",
    "setup": "set-up",
    "first_batch": "first batch",
    "first_step": "first step",
    "irregular_step": "between steps",
    "held_by_hotloop": "held by hotloop",
    "deep_windows": "detailed profiling",
    "shutdown": "shut-down",
    "unaccounted": "not accounted for",
}


def part_name(name: str) -> str:
    """Return what people call a part: of `deep_windows_s` it is `detailed profiling`."""
    bare = name.removesuffix("_s")
    return _NAMES.get(bare, bare.replace("_", " "))
