"""The work of the program's lines: operators, and the backward of what they put into the graph."""

from __future__ import annotations

import msgspec


class LineWork(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the user's program, with all that it calls, per step."""

    path: str
    line: int
    function: str
    runs: float
    """How often it begins."""
    operators: float
    """Calls of operators in it, those inside others left out."""
    nodes: float
    """Of the graph that it makes, and that the backward evaluates."""
    forward_s: float
    """Processor time of the training thread while it runs, under the profiler."""
    forward_repeated_s: float
    """Of that, what the repeats of the same lines and operators cost whatever they compute: one call for all of them
    would save it."""
    forward_host_s: float
    """Of that, in neither an operator nor a repeat: in Python, and in libraries."""
    backward_share: float
    """Of the time of the backward, 0 to 1, in the nodes that it made."""
    backward_repeated_share: float
    """Of the time of the backward, what the repeats of the same nodes cost whatever they compute."""


class StepWork(msgspec.Struct, frozen=True, kw_only=True):
    """The work of a step by line, of the leading process."""

    num_steps: int
    """0: a step runs more lines than are followed, and these are those of its beginning."""
    window_s: float
    backward_s: float | None
    """Per step in all nodes of the graph, under the profiler; None: no step was followed to its end."""
    lines: tuple[LineWork, ...]
    """By path and line."""

    def at(self, path: str, line: int) -> LineWork | None:
        """Return the work of a line; None: it did not run."""
        return next((one for one in self.lines if one.path == path and one.line == line), None)
