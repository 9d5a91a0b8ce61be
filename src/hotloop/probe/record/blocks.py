"""The repeated blocks of a model: layers of one class that stand in one container and follow each other."""

from __future__ import annotations

from collections import Counter
from typing import Any

MIN_PARTS = 2
"""Submodules with parameters that a block has; what is one layer is no block."""


def repeated_blocks(root: Any) -> dict[str, int]:
    """Return the path of each outermost container whose entries are all blocks of one class, and how many they are."""
    from torch.nn import ModuleList, Sequential

    found: dict[str, int] = {}
    for path, module in root.named_modules():
        if not path or any(path.startswith(f"{outer}.") for outer in found):
            continue
        if isinstance(module, (ModuleList, Sequential)) and _is_row_of_blocks(list(module.children())):
            found[path] = len(module)
    return found


def _is_row_of_blocks(entries: list[Any]) -> bool:
    classes = Counter(type(entry) for entry in entries)
    return len(entries) > 1 and len(classes) == 1 and all(_num_parts(entry) >= MIN_PARTS for entry in entries)


def _num_parts(entry: Any) -> int:
    return sum(1 for part in entry.modules() if any(True for _ in part.parameters(recurse=False)))
