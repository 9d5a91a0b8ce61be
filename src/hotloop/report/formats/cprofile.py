"""Host samples as a cProfile file, which pstats, SnakeViz and the converters to KCachegrind's format read."""

from __future__ import annotations

import marshal
from collections import defaultdict
from itertools import pairwise

from hotloop.model.deep import HostSamples

Function = tuple[str, int, str]
"""path, line, name"""


def cprofile(host: HostSamples) -> bytes:
    """Return the file's content.

    Calls were not counted: their number is that of the samples in which the function was seen. A function's line is
    the first of its lines that was seen, since a sample does not tell where it begins.
    """
    own: dict[Function, float] = defaultdict(float)
    whole: dict[Function, float] = defaultdict(float)
    seen: dict[Function, int] = defaultdict(int)
    edges: dict[Function, dict[Function, list[float]]] = defaultdict(
        lambda: defaultdict(lambda: [0, 0.0, 0.0])
    )
    first = _first_lines(host)
    for sample in host.samples:
        stack = [first[number] for number in sample.stack]
        own[stack[-1]] += sample.spent_s
        for function in set(stack):  # a recursive function's time counts once
            whole[function] += sample.spent_s
            seen[function] += sample.num
        for caller, callee in set(pairwise(stack)):
            edge = edges[callee][caller]
            edge[0] += sample.num
            edge[1] += sample.spent_s if callee == stack[-1] and caller == stack[-2] else 0.0
            edge[2] += sample.spent_s
    table = {
        function: (
            seen[function],
            seen[function],
            own[function],
            whole[function],
            {
                caller: (int(num), int(num), self_s, total_s)
                for caller, (num, self_s, total_s) in edges[function].items()
            },
        )
        for function in whole
    }
    return marshal.dumps(table)


def _first_lines(host: HostSamples) -> list[Function]:
    """Return each frame's function, told apart by path and name."""
    first: dict[tuple[str, str], int] = {}
    for frame in host.frames:
        key = (frame.path, frame.function)
        first[key] = min(frame.line, first.get(key, frame.line))
    return [(frame.path, first[frame.path, frame.function], frame.function) for frame in host.frames]
