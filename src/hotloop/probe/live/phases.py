"""Events as phases: which kinds are phases of a step, and how the time of nested ones adds up once."""

from __future__ import annotations

from hotloop.probe.record.events import END, KIND_SHIFT, TIME_SHIFT, Kind

PHASES = {
    Kind.DATA: "data",
    Kind.TRANSFER: "transfer",
    Kind.FORWARD: "forward",
    Kind.EVALUATE: "evaluate",
    Kind.BACKWARD: "backward",
    Kind.COMMUNICATION: "communication",
    Kind.OPTIMIZER: "optimizer",
    Kind.SAVE: "checkpoint",
}
NS = 1e-9
_CODE = (1 << TIME_SHIFT) - 1
_SLOT = END - 1


def decoded(event: int) -> tuple[Kind, int, bool, int]:
    """Return kind, slot, whether it ends, and the time in nanoseconds."""
    code = event & _CODE
    return Kind(code >> KIND_SHIFT), code & _SLOT, bool(code & END), event >> TIME_SHIFT


class PhaseClock:
    """Adds up the time in each phase; the time of a nested phase is not counted in the outer one."""

    def __init__(self) -> None:
        self._open: list[list[int]] = []
        """Kind, beginning and the time of what nested in it, outermost first."""

    def begin(self, kind: Kind, now_ns: int) -> None:
        """Enter a phase."""
        self._open.append([kind, now_ns, 0])

    def end(self, kind: Kind, now_ns: int) -> float | None:
        """Leave a phase; return its own seconds, None: it was not entered."""
        while self._open and self._open[-1][0] != kind:
            self._open.pop()  # an exception left it
        if not self._open:
            return None
        _, begun_ns, nested_ns = self._open.pop()
        spent_ns = now_ns - begun_ns
        if self._open:
            self._open[-1][2] += spent_ns
        return max(0, spent_ns - nested_ns) * NS
