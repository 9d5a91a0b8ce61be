"""How a program ran out of memory, in a sentence."""

from __future__ import annotations

from hotloop.model.out_of_memory import OutOfMemory
from hotloop.model.quantities import byte_size
from hotloop.report.content.source_lines import source_line


def ran_out_told(found: OutOfMemory) -> str:
    """Return what asked for how much, and where."""
    where = "" if found.at is None else f" at {source_line(found.at.path, found.at.line)}"
    phase = f" in the phase {found.phase}" if found.phase else ""
    if found.killed:
        whom = "one of its processes" if found.error else "it"
        return f"Your program ran out of memory: the kernel killed {whom}. It was{where or ' not seen where'}{phase}."
    who = "A loader worker of your program" if found.in_worker else "Your program"
    asked = f": it asked for {byte_size(found.asked_bytes)}" if found.asked_bytes is not None else ""
    return f"{who} ran out of memory{asked}{where}{phase}."
