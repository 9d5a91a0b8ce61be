"""Programs that were written with their fault, by somebody who did not know the rules: each its own base."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.case import Base, Case, Fault

_HERE = Path(__file__).with_suffix("")
_DATA, _HOST = frozenset({"INPUT_BOUND"}), frozenset({"RESIDUAL_HEAVY"})
_IN_PROCESS = ("loader-in-training-process", "slow-dataset-line")
_OUTSIDE = ("hot-line-outside-phases", "loop-outside-phases")
_EXPECTED: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "slow_sample": ((*_IN_PROCESS, "augmentation-on-host"), _DATA),
    "decoding": ((*_IN_PROCESS, "decode-each-epoch"), _DATA),
    "slow_collate": (_IN_PROCESS, _DATA),
    "one_worker": (("too-few-workers", "loader-slower-than-training", "slow-dataset-line"), _DATA),
    "workers_restarted": (("workers-not-persistent", "short-epochs"), _DATA),
    "loader_made_anew": (("workers-not-persistent", "loader-restarted-each-step", "short-epochs"), _DATA),
    "lists_to_tensors": (_IN_PROCESS, _DATA),
    "values_read_one_by_one": (("sync-in-step", *_OUTSIDE), _HOST),
    "journal_each_step": (("logging-in-step", "per-step-logging", *_OUTSIDE), _HOST),
    "pictures_each_few_steps": (_OUTSIDE, _HOST),
    "loss_row_by_row": (
        ("python-loop-over-tensor", "hot-line-before-backward"),
        frozenset({"COMPUTE_BOUND"}),
    ),
    "model_token_by_token": (("python-loop-over-tensor",), frozenset({"COMPUTE_BOUND"})),
    "anomaly_mode": (("anomaly-mode-on",), frozenset({"COMPUTE_BOUND"})),
    "profiler_each_step": (("profiler-left-on",), _HOST),
    "checkpoint_each_few_steps": (("frequent-checkpoints", "per-step-checkpoint"), _HOST),
    "evaluation_each_few_steps": (("frequent-evaluation",), _HOST | {"COMPUTE_BOUND"}),
    "evaluation_with_graph": (("evaluation-with-gradients",), _HOST | {"COMPUTE_BOUND"}),
    "float64": (("double-precision",), frozenset({"COMPUTE_BOUND"})),
    "batch_of_two": (("batch-too-small",), frozenset({"COMPUTE_BOUND"})),
    "state_copied_each_step": (("parameter-loop-in-step", *_OUTSIDE), _HOST),
    "norms_read_one_by_one": (("sync-in-step", "parameter-loop-in-step", *_OUTSIDE), _HOST),
    "garbage_collected": (("garbage-collected-in-step",), _HOST),
    "losses_kept": (("loss-graph-kept-alive", "memory-growing"), _HOST),
    "activations_kept": (("memory-growing", "host-code-in-model"), frozenset({"COMPUTE_BOUND"})),
    "threads_16": (("oversubscribed-threads",), frozenset({"COMPUTE_BOUND"})),
    "optimizer_for_loop": (("unfused-optimizer",), frozenset({"COMPUTE_BOUND"})),
    "forward_twice": (("forward-without-backward",), frozenset({"COMPUTE_BOUND"})),
    "waits_for_a_service": (_OUTSIDE, _HOST),
    "augmented_in_the_loop": (_OUTSIDE, _HOST),
    "straggler": (("straggler-rank",), _DATA),
    "tokenizing": (_IN_PROCESS, _DATA),
    "parsing_lines": (("input-bound", "slow-dataset-line"), _DATA),
    "small_files": ((*_IN_PROCESS, "file-read-per-sample"), _DATA),
    "callback_each_step": (_OUTSIDE, _HOST),
    "histograms_in_a_hook": (_OUTSIDE, frozenset({"COMPUTE_BOUND"})),
    "table_each_step": (("logging-in-step", "per-step-logging", *_OUTSIDE), _HOST),
    "status_line": (("sync-in-step", "parameter-loop-in-step", *_OUTSIDE), _HOST),
    "loss_pair_by_pair": (
        ("python-loop-over-tensor", "hot-line-before-backward"),
        frozenset({"COMPUTE_BOUND"}),
    ),
    "heads_one_by_one": (("python-loop-over-tensor",), frozenset({"COMPUTE_BOUND"})),
    "numpy_in_the_model": (("host-code-in-model",), frozenset({"COMPUTE_BOUND"})),
}
"""Of each fault the codes that would be right, and what TraceML would be right to call it."""


@dataclass(frozen=True)
class Written(Case):
    """A program that has its fault from the beginning."""

    row: Any = None
    """Its line of `written/labels.jsonl`."""

    @property
    def folder(self) -> Path | None:
        """Where its files are; None: it is one file."""
        folder = _HERE / self.base.name
        return folder if folder.is_dir() else None

    def source(self) -> str:
        """The script's text, as it is."""
        path = self.folder / "train.py" if self.folder else _HERE / f"{self.base.name}.py"
        return path.read_text(encoding="utf-8")

    def others(self) -> dict[str, str]:
        """The other files, by name."""
        files = self.folder.glob("*.py") if self.folder else ()
        return {path.name: path.read_text(encoding="utf-8") for path in files if path.name != "train.py"}

    def lines(self) -> frozenset[int]:
        """The numbers of the script's lines that a finding may name."""
        return frozenset(line for name, line in self.places() if name == "train.py")

    def places(self) -> frozenset[tuple[str, int]]:
        """The lines that a finding may name, by file."""
        also = self.row.get("also") or []
        pairs = [(self.row["file"], line) for line in self.row["lines"]]
        return frozenset(pairs + [(Path(one["file"]).name, line) for one in also for line in one["lines"]])


def _written(row: dict[str, Any]) -> Written:
    base = Base(row["name"], "", "", "", launcher=tuple(row.get("launcher", ())))
    if row["fault"] == "clean":
        return Written(base, None, row)
    expected, categories = _EXPECTED[row["fault"]]
    return Written(base, Fault(row["fault"], frozenset(expected), _as_it_is, categories), row)


def _as_it_is(*_: object) -> None:
    """Inject nothing."""


_ROWS = [json.loads(line) for line in (_HERE / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
WRITTEN: tuple[Written, ...] = tuple(_written(row) for row in _ROWS if row["fault"] in {"clean", *_EXPECTED})
SYNCHRONIZING = {
    row["name"]: frozenset(row["lines"]) for row in _ROWS if row["fault"] == "eight_synchronizations"
}
"""Programs with eight different hidden synchronizations, and the lines of these."""
