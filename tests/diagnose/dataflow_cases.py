"""Observations whose dataflow is known."""

from __future__ import annotations

from typing import Any

import msgspec

from hotloop.model.dataflow import BackwardCalls, CodeLine, Dataflow, OperationGroup, TableGradients
from hotloop.model.deep import Deep
from hotloop.model.observation import Observation

from .observations import FINE

LINES = (
    CodeLine("train.py", 70, "<module>"),
    CodeLine("train.py", 61, "main"),
    CodeLine("model.py", 12, "forward"),
    CodeLine("model.py", 13, "forward"),
    CodeLine("model.py", 30, "table"),
    CodeLine("model.py", 31, "table"),
    CodeLine("/lib/site-packages/trainer.py", 5, "train", "library"),
)
MODULE, MAIN, CALL, OTHER, TABLE, TABLE_2, TRAINER = range(len(LINES))
TIMES = (
    "spent", "neutral", "first", "repeated", "constant", "new", "graph", "backward", "again_backward", "unheld",
    "unheld_graph", "dropped", "unread",
)  # fmt: skip


def group(*lines: int, part: str = "forward", parametrized: bool = False, **times: float) -> OperationGroup:
    """Return operations under lines; all that they spent and is not said otherwise is new."""
    said: dict[str, Any] = {f"{name}_s": times.get(name, 0.0) for name in TIMES}
    said["new_s"] = said["spent_s"] - sum(
        said[f"{name}_s"] for name in ("neutral", "first", "repeated", "constant")
    )
    return OperationGroup(lines=(MODULE, MAIN, *lines), part=part, parametrized=parametrized, num=4, **said)


def with_flow(*groups: OperationGroup, observation: Observation = FINE, **more: Any) -> Observation:
    """Return it with a window of four steps, of a second of forward and of backward."""
    rest = 1.0 - sum(one.spent_s for one in groups)
    flow = Dataflow(
        num_steps=4,
        backward_s=1.0,
        lines=LINES,
        groups=(*groups, group(OTHER, spent=rest, backward=1.0 - sum(one.backward_s for one in groups))),
        backwards=more.get("backwards", ()),
        tables=more.get("tables", ()),
    )
    return msgspec.structs.replace(observation, deep=Deep(dataflow=flow))


def backward(line: int, again: float) -> BackwardCalls:
    """Return a line that calls backward once a step, of which so much was gone through before."""
    return BackwardCalls(path="train.py", line=line, function="main", num=4, spent_s=0.5, again_s=again)


REPEATED = with_flow(
    group(CALL, TABLE, spent=0.4, first=0.1, repeated=0.3, backward=0.5, again_backward=0.4),
    group(CALL, TABLE_2, spent=0.1, first=0.02, repeated=0.06, neutral=0.02),
)
CONSTANT = with_flow(
    group(CALL, TABLE, spent=0.3, constant=0.3),
    group(CALL, TABLE_2, spent=0.1, constant=0.05, neutral=0.05),
    group(CALL, spent=0.02),
)
DATAFLOW_CASES = {
    "repeated-computation": REPEATED,
    "constant-computed-each-step": CONSTANT,
    "repeated-backward": with_flow(backwards=(backward(40, 0.0), backward(41, 0.4))),
    "gradients-without-optimizer": with_flow(
        group(CALL, TABLE, spent=0.3, graph=0.3, backward=0.4, unheld=0.3, unheld_graph=0.2)
    ),
    "input-gradient-unread": with_flow(group(CALL, TABLE, spent=0.3, graph=0.3, backward=0.8, unread=0.3)),
    "gradients-dropped": with_flow(group(CALL, TABLE, spent=0.3, graph=0.3, backward=0.4, dropped=0.3)),
    "dense-embedding-gradients": with_flow(
        tables=(
            TableGradients(
                lines=(MODULE, MAIN, CALL), num_rows=100_000, width=16, num=4, used=400, spent_s=0.5
            ),
        )
    ),
}
"""For each code a program that has the pattern."""
