"""The page of results: each program's run by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

UNNAMED = ("irregular_step_s", "unaccounted_s")
"""Time between steps that is in nothing the probe knows, and time that is in no part."""
PARTS = {
    "start": ("interpreter_s", "launcher_s", "import_s", "setup_s"),
    "first": ("first_batch_s", "first_step_s"),
    "compile": ("compilation_s",),
    "epochs": ("epoch_boundary_s",),
    "evaluate": ("evaluation_s",),
    "save": ("checkpoint_s",),
    "log": ("logging_s",),
    "end": ("after_training_s", "shutdown_s"),
    "hotloop": ("held_by_hotloop_s",),
}


def page(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the table and what it comes to."""
    seen = [row for row in rows if row["run"]]
    shares = sorted(_unnamed(row["run"]) for row in seen)
    return [
        f"{len(seen)} programs of tests/programs, each run to its end under `observe --full`. Shares of the wall time",
        "in per cent; `other` is the step's time in no phase and without a name, `unnamed` what lies between steps",
        "and is in nothing the probe knows, or in no part at all.",
        "",
        f"Unnamed: median {shares[len(shares) // 2]:.2%}, largest {shares[-1]:.2%}; "
        f"{sum(share <= 0.02 for share in shares)} of {len(seen)} programs have at most 2%.",
        "",
        *_table(seen),
        "",
        *(f"- `{row['command']}` gave nothing: {row['error'].strip()}" for row in rows if not row["run"]),
    ]


def _unnamed(run: dict[str, Any]) -> float:
    return float(sum(abs(run["parts"].get(name, 0.0)) for name in UNNAMED) / run["wall_s"])


def _table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    columns = ["program", "wall s", "steps", "other", *PARTS, "unnamed"]
    yield f"| {' | '.join(columns)} |"
    yield "|---|" + "---:|" * (len(columns) - 1)
    for row in rows:
        run = row["run"]
        parts, wall_s = run["parts"], run["wall_s"]
        steps = sum(spent for name, spent in parts.items() if name.startswith("step_"))
        other = parts.get("step_other_s", 0.0)
        shares = [
            steps - other,
            other,
            *(sum(parts.get(one, 0.0) for one in names) for names in PARTS.values()),
        ]
        cells = [f"{100 * spent / wall_s:.1f}" if spent >= 5e-4 * wall_s else "" for spent in shares]
        yield f"| `{row['command']}` | {wall_s:.1f} | {' | '.join(cells)} | {100 * _unnamed(run):.2f} |"
