"""From watched operations to what is computed again, and what gradients were for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotloop.model.dataflow import BackwardCalls, CodeLine, Dataflow, OperationGroup, TableGradients
from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.decode.spans import NS, Timeline

_TIMES = (
    "spent", "neutral", "first", "repeated", "constant", "new", "graph", "backward", "again_backward", "unheld",
    "unheld_graph", "dropped", "unread",
)  # fmt: skip


def read_dataflow(_: Path, file: DeepFile, lead: Timeline) -> Dataflow:  # noqa: ARG001 - a reader
    """Return the dataflow of one process."""
    value = file.value
    return Dataflow(
        num_steps=value["steps"],
        backward_s=value["backward_ns"] * NS,
        lines=tuple(CodeLine(*one) for one in value["lines"]),
        groups=tuple(_group(row) for row in value["stacks"]),
        backwards=tuple(
            BackwardCalls(
                path=row["path"],
                line=row["line"],
                function=row["function"],
                num=row["num"],
                spent_s=row["spent_ns"] * NS,
                again_s=row["again_ns"] * NS,
            )
            for row in value["backwards"]
        ),
        tables=tuple(
            TableGradients(
                lines=tuple(row["lines"]),
                num_rows=row["num_rows"],
                width=row["width"],
                num=row["num"],
                used=row["used"],
                spent_s=row["spent_ns"] * NS,
            )
            for row in value["embeddings"]
        ),
    )


def _group(row: dict[str, Any]) -> OperationGroup:
    return OperationGroup(
        lines=tuple(row["lines"]),
        part=row["part"],
        parametrized=row["parametrized"],
        num=row["num"],
        **{f"{name}_s": row[f"{name}_ns"] * NS for name in _TIMES},
    )
