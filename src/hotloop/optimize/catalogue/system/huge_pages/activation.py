"""The activation of huge_pages: sees whether a tensor of torch's lies in them."""

from __future__ import annotations

from pathlib import Path

from hotloop.probe.activation.activation import Activation

PROBE_BYTES = 16 << 20
"""Above every threshold at which malloc maps a buffer of its own, so that its pages are new."""


class PagesInUse(Activation):
    """Looks at the pages of a tensor that it makes; once, when it is asked for the effect."""

    def __init__(self) -> None:
        self._seen: tuple[bool, str] | None = None

    def effect(self) -> tuple[bool, str]:
        """Return whether the tensor is in huge pages."""
        if self._seen is None:
            self._seen = _look()
        return self._seen


def _look() -> tuple[bool, str]:
    import torch

    tensor = torch.ones(PROBE_BYTES, dtype=torch.uint8)
    try:
        huge = _huge_kib(Path("/proc/self/smaps").read_text(), tensor.data_ptr())
    except OSError:
        return False, "the pages of this process cannot be read"
    return huge > 0, f"{huge:,} KiB of a tensor's mapping of {PROBE_BYTES >> 20} MiB are in huge pages"


def _huge_kib(maps: str, address: int) -> int:
    """Return the KiB in huge pages of the mapping that holds an address."""
    here = False
    for line in maps.splitlines():
        head = line.split(maxsplit=1)[0]
        if "-" in head and not head.endswith(":"):
            low, high = (int(end, 16) for end in head.split("-"))
            here = low <= address < high
        elif here and head == "AnonHugePages:":
            return int(line.split()[1])
    return 0
