"""The results page: how many, the table, the confusion, and TraceML's answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.diagnosis import traceml
from benchmarks.diagnosis.outcome import Outcome

_MATERIAL = 1.05
"""A program that takes less than 5% longer than the clean one has no fault that matters."""


_NOTES = (
    "- `takes`: the time of the loop per sample against that of the clean program; each was run once, on a machine "
    "that others used, so that it is rough.",
    "- `written`: programs made with their fault by somebody who did not know the rules: two sets, of 40 and of 30. Of "
    "the first, the rules as they were when it was made had the fault on top in 20 of 30 and no warning in 9 of 10 "
    "clean ones, of the second, after the rules had been changed for the first, 15 of 20 and 5 of 10 (five for the "
    "default optimizer, information since). What is shown is after both: for rules to come a new set is needed. "
    "They took 6 to 8 s of steps, the first set with all threads.",
    "- `line`: whether the top finding names a line of the fault: an injected one, or, where a setting of the loader "
    "or the optimizer is the fault, the line that makes it. `-`: it names a metric.",
    "- A fault counts as found when its code comes first, also as information.",
    "- TraceML names a part of the step. Counted as right in its favour: `INPUT_BOUND` for every fault of loading, "
    "`RESIDUAL_HEAVY` for the user's own code in the step (evaluation: `COMPUTE_BOUND`, too), `COMPUTE_BOUND` for "
    "faults inside forward, backward and optimizer, although it says that of most programs without a fault; for those "
    "anything but input and residual. Plain loops were edited as its manual says (`traceml.trace_step(model)` around "
    "the step); hotloop ran them as they are.",
)


def page(known: Mapping[str, Sequence[Outcome]], seconds: float) -> list[str]:
    """The whole page, for each set of programs."""
    lines = [
        f"{seconds:g} s of steps of each program, one thread, passive waiting, each run once; others took "
        f"{_foreign([one for outcomes in known.values() for one in outcomes])} of the machine meanwhile.",
        "",
        *_NOTES,
    ]
    for name, outcomes in known.items():
        if outcomes:
            lines += ["", f"## {name.capitalize()}", "", *_counts(outcomes), "", *_table(outcomes)]
            lines += ["", *_missed(outcomes), "### Confusion", "", *_confusion(outcomes)]
    return lines


def _counts(outcomes: Sequence[Outcome]) -> list[str]:
    faulty = [one for one in outcomes if one.case.fault]
    clean = [one for one in outcomes if not one.case.fault]
    placed = [one for one in faulty if one.right and one.line != "-"]
    bases = len({one.case.base.name for one in faulty})
    asked = [one for one in outcomes if one.other is not None]
    both = [one for one in asked if one.case.fault]
    return [
        f"- The injected fault is the top finding in {_of(faulty)} programs made from {bases} base loops.",
        f"- It is the top finding and a warning in {sum(one.right and bool(one.loud) for one in faulty)}.",
        f"- Where the top finding is the fault and names a line ({len(placed)}), it is a line of the fault in "
        f"{sum(one.line == 'yes' for one in placed)}.",
        f"- {_of(clean)} clean programs have no warning.",
        f"- TraceML, asked about {len(both)} of the faults, names the part of the step in "
        f"{sum(_theirs(one) for one in both)}; hotloop names the fault in {sum(one.right for one in both)} of these. "
        f"Of {len(asked) - len(both)} clean programs it blames input or residual in none but "
        f"{sum(not _theirs(one) for one in asked if not one.case.fault)}.",
    ]


def _table(outcomes: Sequence[Outcome]) -> list[str]:
    usual = {one.case.base.name: one.sample_s for one in outcomes if not one.case.fault}
    lines = [
        "| program | takes | injected | top finding | line | right | TraceML |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        ratio = _ratio(one.sample_s, usual.get(one.case.base.name))
        takes = f"{ratio:.2f}x" if ratio and one.case.fault else ""
        said = traceml.kind(one.other)
        theirs = f"{said}{'' if _theirs(one) else ' (no)'}" if said else ""
        right = "yes" if one.right else "**no**"
        words = (one.case.name, takes, one.expected, one.top, one.line, right, theirs)
        lines.append(f"| {' | '.join(words)} |")
    return lines


def _missed(outcomes: Sequence[Outcome]) -> list[str]:
    lines = [f"- {one.case.name}: said {one.top}. {_first(one)}" for one in outcomes if not one.right]
    return ["### Not right", "", *lines, ""] if lines else []


def _first(one: Outcome) -> str:
    if not one.findings:
        return one.errors
    said = "; ".join(f"{each['code']} ({each['evidence']})" for each in one.findings[:2])
    return f"{said}."


def _confusion(outcomes: Sequence[Outcome]) -> list[str]:
    counts = Counter((one.expected, one.top) for one in outcomes)
    rows = [f"| {kind} | {top} | {num} |" for (kind, top), num in sorted(counts.items())]
    return ["| injected | top finding | programs |", "|---|---|---|", *rows]


def _theirs(one: Outcome) -> bool:
    return traceml.right(one.case, traceml.kind(one.other))


def _of(outcomes: Sequence[Outcome]) -> str:
    share = sum(one.right for one in outcomes) / len(outcomes) if outcomes else 0.0
    return f"{sum(one.right for one in outcomes)} of {len(outcomes)} ({share:.0%})"


def _ratio(here: float | None, usual: float | None) -> float | None:
    return here / usual if here and usual else None


def _foreign(outcomes: Sequence[Outcome]) -> str:
    shares = [one.diagnosis["observation"].get("foreign_share") for one in outcomes if one.diagnosis]
    measured = [share for share in shares if share is not None]
    if not measured:
        return "an unknown share"
    return f"{min(measured):.0%} to {max(measured):.0%} (median {median(measured):.0%})"
