"""The page of the rows, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

MIB = 1 << 20
PEERS = {
    "mem_tracker": "torch MemTracker",
    "accelerate": "accelerate",
    "zero": "DeepSpeed ZeRO-2",
    "sixteen": "16 B a parameter",
}


_HEAD = """# `hotloop memory plan` against what is known

Made by `python -m benchmarks.memory_plan published|tally|survey ROWS` and `page ROWS`, on a machine without a GPU, with
torch 2.13 for the CPU. Published figures were measured with other versions of torch; what is known to differ is said.
Peers: torch's MemTracker under FakeTensorMode, on this device guard and reset before every iteration (it answers for
tensors, not for what is reserved); the formula of `accelerate estimate-memory` for training; DeepSpeed's
`estimate_zero2_model_states_mem_needs` for one GPU; sixteen bytes a parameter. These three know no activations.
"""


def page(rows: Sequence[dict[str, Any]]) -> str:
    """Return the page; of several rows of a name the last counts."""
    latest = {(row["kind"], row["name"]): row for row in rows}
    by_kind: dict[str, list[dict[str, Any]]] = {"published": [], "tally": [], "survey": []}
    for row in latest.values():
        by_kind[row["kind"]].append(row)
    parts = [
        _HEAD,
        *_published(by_kind["published"]),
        *_tally(by_kind["tally"]),
        *_survey(by_kind["survey"]),
    ]
    return "\n".join(parts) + "\n"


def _published(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "## Peaks that were measured on a GPU and published\n"
    yield "Ratio of each estimate to the published figure; 1.000 is right. `-`: no answer.\n"
    yield f"| program | published, MB | hotloop | {' | '.join(PEERS.values())} |"
    yield "|---|---:|---:|" + "---:|" * len(PEERS)
    ratios: dict[str, list[float]] = {name: [] for name in ("plan", *PEERS)}
    reasons: dict[str, list[str]] = {}
    for row in rows:
        estimate = row["plan"][row["of"]]
        cells = []
        for name, value in (("plan", estimate), *((peer, row[peer]) for peer in PEERS)):
            if isinstance(value, (int, float)) and value > 0:
                ratios[name].append(value / row["truth"])
                cells.append(f"{value / row['truth']:.3f}")
            else:
                cells.append("-")
                reasons.setdefault(f"{PEERS.get(name, 'hotloop')}: {value}", []).append(row["name"])
        yield f"| {row['name']} | {row['truth'] / 1e6:,.0f} {row['of']} | {' | '.join(cells)} |"
    summary = [_error(values) for values in ratios.values()]
    yield f"| **error, median / worst** | | {' | '.join(summary)} |\n"
    for reason, names in reasons.items():
        yield f"- {reason[:160]} ({', '.join(names)})"
    for source in dict.fromkeys(row["source"] for row in rows):
        names = [row["name"] for row in rows if row["source"] == source]
        yield f"- {', '.join(names)}: {source}"
    for unlike in dict.fromkeys(row["unlike"] for row in rows if row["unlike"]):
        yield f"- unlike what was measured: {unlike}"
    yield ""


def _tally(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "## Tensors counted on the CPU\n"
    yield "The same program, run for real, its tensors counted (`tally.py`), against the tensors at the planned peak.\n"
    yield "| program | counted, MiB | planned, MiB | ratio | seconds of the plan |"
    yield "|---|---:|---:|---:|---:|"
    ratios = []
    for row in rows:
        planned, truth = row["plan"]["tensors"], row["truth"]
        if planned is None or not isinstance(truth, int) or not truth:
            why = row["plan"]["said"] if planned is None else f"not counted: {truth}"
            yield f"| {row['name']} | | | - {why[:80]} | {row['plan']['wall_s']:.0f} |"
            continue
        ratios.append(planned / truth)
        yield (
            f"| {row['name']} | {truth / MIB:.2f} | {planned / MIB:.2f} | {planned / truth:.3f} "
            f"| {row['plan']['wall_s']:.0f} |"
        )
    yield f"| **error, median / worst** | | | {_error(ratios)} | |\n"


def _survey(rows: list[dict[str, Any]]) -> Iterator[str]:
    works = sum(row["plan"]["allocated"] is not None for row in rows)
    yield f"## Does it work: {works} of {len(rows)} programs\n"
    yield "On a virtual T4. *left out*: configurations that the program cannot have. The machine was shared.\n"
    yield "| program | works | s | allocated, MiB | reserved, MiB | largest batch | left out | assumed; why not |"
    yield "|---|---|---:|---:|---:|---:|---:|---|"
    for row in sorted(rows, key=lambda row: (row["plan"]["allocated"] is not None, row["name"])):
        plan = row["plan"]
        if plan["allocated"] is None:
            yield f"| {row['name']} | no | {plan['wall_s']:.0f} | | | | | {plan['said'][:150]} |"
            continue
        largest = f"{plan['largest']:,}" if plan["largest"] else ""
        yield (
            f"| {row['name']} | yes | {plan['wall_s']:.0f} | {plan['allocated'] / MIB:.1f} "
            f"| {plan['reserved'] / MIB:.0f} | {largest} | {plan['missing']} | {plan['said']} |"
        )


def _error(ratios: list[float]) -> str:
    if not ratios:
        return "-"
    errors = [abs(ratio - 1) for ratio in ratios]
    return f"{statistics.median(errors):.1%} / {max(errors):.1%}"
