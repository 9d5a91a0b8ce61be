"""Results of tuning for the screens to show."""

from __future__ import annotations

import io

import msgspec
from rich.console import Console, RenderableType

from hotloop.model.observation import Anchor
from hotloop.model.optimization import Candidate, Numerics, Refusal
from hotloop.model.ratio import Ratio
from hotloop.model.tree_memory import TreeMemory
from hotloop.model.tuning import (
    Baseline,
    Compatibility,
    Contention,
    Failure,
    FailureKind,
    Measured,
    ParityEvidence,
    Plan,
    PlanStep,
    Trial,
    TuneResult,
)

COMMAND = ("python", "train.py", "--epochs", "3")
FIT = Compatibility(
    machine={"cpu_model": "a processor"},
    torch_version="2.13.0",
    script="train.py",
    script_sha256="0" * 64,
    command=COMMAND,
)
BASELINE = Baseline(
    step_s=0.1234,
    mean_s=0.1312,
    low_s=0.121,
    high_s=0.1262,
    samples_per_s=518.6,
    peak_bytes=1 << 30,
    anchor=Anchor("optimizer", 0),
)
TREE = TreeMemory(peak_bytes=1 << 31, method="PSS", num_processes=5)
STEPS = (
    PlanStep(
        name="loader_workers",
        params={"num_workers": 2, "persistent_workers": True},
        ratio=1.5,
        low=1.42,
        high=1.58,
        break_even_steps=1240,
        evidence="2 workers were seen",
    ),
    PlanStep(name="autocast_bf16", ratio=1.4, low=1.33, high=1.47, numerics=Numerics.TOLERANCE),
)
PARITY = ParityEvidence(
    passed=True,
    statistic=0.00081,
    limit=0.023,
    num_steps=64,
    method="worst window",
    evidence=(
        "mean deviation 0.00024 (limit 0.0078); lasting deviation 0.00014 (limit 0.0078); "
        "worst window 0.00081 (limit 0.023); floor from 2 runs of the original"
    ),
)
REFUSED = (
    Refusal("pinned_memory", "does not apply: there is no accelerator to copy to"),
    Refusal(
        "loader_workers(num_workers=1)",
        "replaced by loader_workers(num_workers=2, persistent_workers=True), which was faster",
    ),
    Refusal("channels_last", "no difference: 1.004 [0.962, 1.047]"),
    Refusal("thread_count(num_threads=1)", "slower: 0.62x in 2 blocks"),
    Refusal("thread_count(num_threads=3)", "no difference: 0.993 [0.951, 1.037]"),
    Refusal(
        "compile",
        "failed (crash): the program failed with exit code 1: torch._inductor.exc.InductorError: "
        "[bold]CppCompileError[/bold]: C++ compile error",
    ),
)


SCREENED = Measured(pairs=((0.4, 0.41, float("nan")),), step_s=(0.12, float("nan")), one_off_s=float("inf"))
"""Numbers that are none do no harm."""


def _trial(name: str, decision: str, **params: int | bool) -> Trial:
    return Trial(
        key=f"trial||{'|'.join([name, *params])}",
        candidate=Candidate(name=name, params=params),
        incumbent=(),
        outcome=SCREENED,
        decision=decision,
        ratio=Ratio(1.5, 1.4, 1.6) if decision == "accepted" else None,
    )


TRIALS = (
    _trial("loader_workers", "accepted", num_workers=2, persistent_workers=True),
    _trial("autocast_bf16", "accepted"),
    _trial("loader_workers", "accepted", num_workers=1),
    _trial("channels_last", REFUSED[2].reason),
    _trial("thread_count", REFUSED[3].reason, num_threads=1),
    _trial("thread_count", REFUSED[4].reason, num_threads=3),
    Trial(
        key="trial||compile",
        candidate=Candidate(name="compile"),
        incumbent=(),
        outcome=Failure(kind=FailureKind.CRASH, message="it failed", log_end="the end"),
        decision="failed (crash): it failed",
    ),
)
"""Of every candidate that a result names."""


def full(**changes: object) -> TuneResult:
    """A result with everything in it."""
    values: dict[str, object] = {
        "command": COMMAND,
        "baseline": BASELINE,
        "floor": 0.0117,
        "plan": Plan(steps=STEPS, speedup=Ratio(2.1, 1.98, 2.23), parity=PARITY, fit=FIT),
        "refused": REFUSED,
        "trials": TRIALS,
        "peak_bytes": (1 << 30, 800 << 20),
        "tree_peak": (TREE, msgspec.structs.replace(TREE, peak_bytes=1200 << 20, num_processes=3)),
        "contention": Contention(num_blocks=120, num_void=4, num_noisy=1, max_foreign_share=0.43),
        "confirmation": (
            "3 sets of fresh processes, 6 blocks of each copy of your program in turns (ABBA), as you run it; "
            "95% interval over sets and blocks, valid at every look"
        ),
        "wall_s": 412.0,
        "coverage": (
            "isolation: user namespaces are not permitted here, so child processes may write to your files",
        ),
        **changes,
    }
    return TuneResult(**values)  # type: ignore[arg-type]


def empty(**changes: object) -> TuneResult:
    """Nothing helped."""
    values: dict[str, object] = {
        "plan": Plan(steps=(), speedup=None, parity=None, fit=FIT),
        "refused": REFUSED[2:4],
        "trials": TRIALS[3:5],
        "peak_bytes": (None, None),
        "tree_peak": (None, None),
        "contention": Contention(num_blocks=40, num_void=0, max_foreign_share=0.02),
        "confirmation": "no change was proven faster",
        "coverage": (),
        **changes,
    }
    return full(**values)


def shown(what: RenderableType, width: int = 80) -> str:
    """What the terminal shows, without trailing blanks."""
    out = io.StringIO()
    Console(file=out, width=width, no_color=True, highlight=False).print(what, crop=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
