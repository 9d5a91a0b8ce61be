"""Where a finding is, in words."""

from __future__ import annotations

from hotloop.model.finding import Finding
from hotloop.report.content.run_parts import part_name

_WORDS = (
    ("phases.data.", "waiting for data"),
    ("phases.transfer.", "copies to the device"),
    ("phases.communication.", "waiting for other ranks"),
    ("phases.optimizer.", "the optimizer"),
    ("phases.other.", "code between the phases"),
    ("step.", "the step"),
    ("efficiency.", "the arithmetic of a step"),
    ("ranks.page_faults", "the step"),
    ("ranks.", "the ranks"),
    ("memory.", "memory"),
    ("inference.", "the model"),
    ("run.num_recompilations", "compilation"),
    ("run.collection_s", "garbage collection"),
    ("run.scored_with_gradients_s", "evaluation"),
    ("program.loaders.", "the loader's settings"),
    ("program.", "the program's settings"),
    ("deep.loading.", "making a batch"),
    ("deep.operators", "operators"),
    ("operators", "operators"),
    ("kernels", "kernels"),
    ("device.", "the device"),
    ("idle_causes.", "idle time of the device"),
    ("syncs", "waits for the device"),
    ("monitors.", "the machine"),
    ("foreign_share", "the machine"),
)
"""Beginnings of measured names, and what people call what they are about."""
WHOLE = "the whole program"
_PARTS = "run.parts."


def place(finding: Finding) -> str:
    """Return where a finding is: `train.py:12`, or in words what it is about."""
    if finding.path is not None:
        return f"{finding.path}:{finding.line}" if finding.line is not None else finding.path
    metric = finding.metric or ""
    if metric.startswith(_PARTS):
        return part_name(metric.removeprefix(_PARTS))
    return next((words for begin, words in _WORDS if metric.startswith(begin)), WHOLE)
