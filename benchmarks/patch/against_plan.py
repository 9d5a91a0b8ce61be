"""Patched programs against the same plan switched on by hooks, and against the program as it was.

    python -m benchmarks.patch.against_plan [NAME...] [--sources FOLDER --site FOLDER] [--write]

Each program is observed, every step of a plan by hand that a session would try and its source takes is written, and the
patched program runs in turns with the original under that plan, then with the original alone. Test programs lie in
tests/programs, published ones are laid out as `benchmarks.published` does.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.patch.on_programs import COMMANDS, PROGRAMS
from benchmarks.published.corpus import CORPUS
from benchmarks.published.place import lay_out, lengthened
from benchmarks.tune.page import write
from benchmarks.tune.side_by_side import inside, shown
from hotloop.launch.command import resolve
from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.safety import Safety
from hotloop.model.tuning import Compatibility, Plan, PlanStep
from hotloop.observe.run.stopping import StopRule
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.registry import get
from hotloop.patch.patched_tree import patched_tree
from hotloop.patch.program_files import editable
from hotloop.patch.prove import Prover
from hotloop.patch.rewrite_plan import Patch, rewrite_plan
from hotloop.source.outcome import Edited
from hotloop.stats.verdict import MIN_MARGIN
from hotloop.tune.compare.pairs import pairs, start_arm
from hotloop.tune.compare.program import Program, program
from hotloop.tune.design.candidates import HOPELESS

STEPS: Mapping[str, dict[str, Any]] = {
    "debug_apis_off": {},
    "dataset_in_memory": {},
    "fused_pointwise": {},
    "fused_layers": {},
    "channels_last": {},
    "channels_last_3d": {},
    "fused_optimizer": {"implementation": "fused"},
    "autocast_bf16": {},
}
OWN = (
    "cnn_epochs", "convnet_100ms", "nanogpt", "vae", "siamese", "unet3d", "jpeg_images", "text_padding",
    "lightning_module", "fabric_train", "hf_trainer", "accelerate_loop", "package_layout", "anomaly_rows",
)  # fmt: skip
PUBLISHED = (
    "mnist", "vae", "mingpt_adder", "makemore", "cifar100", "tcn_adding_problem", "pygat", "pytorch_gan", "timm_train",
)  # fmt: skip
LIMIT_S = 45.0
LOOK_STEPS, LOOK_S = 12, 120.0
"""After so many steps a step of a plan says whether it acts."""
GOAL = 0.97
NOT_ASKED = Compatibility(machine={}, torch_version=None, script=None, script_sha256=None, command=())


@dataclass
class Row:
    """What came of one program."""

    name: str
    edits: str = ""
    over_original: str = "-"
    parity: str = "-"
    over_plan: str = "-"
    reached: str = "-"

    def __str__(self) -> str:
        cells = (self.name, self.edits, self.over_original, self.parity, self.over_plan, self.reached)
        return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print one row for each program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sources", type=Path)
    parser.add_argument("--site", type=Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    rows = []
    for name in args.names or [*OWN, *(f"published:{one}" for one in PUBLISHED if args.sources)]:
        with tempfile.TemporaryDirectory(prefix="patched-") as scratch, contextlib.ExitStack() as places:
            laid = _published if name.startswith("published:") else _own
            words = places.enter_context(laid(name.removeprefix("published:"), Path(scratch), args))
            row = Row(name)
            try:
                _measure(row, words)
            except HotloopError as error:
                row.edits = f"failed: {error.message[:200]}".replace("\n", " ")
        print(row, file=sys.stderr, flush=True)
        rows.append(str(row))
    lines = [
        "The patched program beside the original with the same steps switched on by hooks, in turns; hotloop writes",
        "the patch and has no hook that changes anything in it. 95% intervals over pairs and blocks.",
        "",
        "| program | written | patched over original | parity | patched over plan | at least 0.97 |",
        "|---|---|---|---|---|---|",
        *rows,
    ]
    if args.write:
        write("patch-speed", "Patched programs against their plans", lines)


@contextlib.contextmanager
def _own(name: str, scratch: Path, _: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    words = [
        "1000000" if before == "--steps" else word.replace("--steps=12", "--steps=1000000")
        for before, word in zip(["", *COMMANDS[name].split()], COMMANDS[name].split(), strict=False)
    ]
    shutil.copytree(PROGRAMS, scratch / "programs", ignore=shutil.ignore_patterns("runs", "__pycache__"))
    with inside(scratch / "programs" / (name if name == "package_layout" else ""), dict(os.environ)):
        yield (sys.executable, *words)


@contextlib.contextmanager
def _published(name: str, scratch: Path, args: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    entry = next(entry for entry in CORPUS if entry.name == name)
    laid = lay_out(lengthened(entry), args.sources, args.site, scratch)
    with inside(laid.folder, laid.environment):
        yield laid.argv


def _measure(row: Row, words: tuple[str, ...]) -> None:
    here = Path.cwd()
    original = program("original", words, here, StopRule(), lambda _: None)
    sites = original.observation.sites
    files = editable(sites, here, words)
    wanted = [
        PlanStep(name=name, params=params, ratio=1, low=1, high=1, numerics=numerics)
        for name, params in STEPS.items()
        if (numerics := _offered(name, original.observation)) is not None
    ]
    patch = rewrite_plan(wanted, sites, files, Safety.UNSAFE)
    steps = [each.step for each in patch.outcomes if isinstance(each.outcome, Edited)]
    acting = _acting(_planned(original, steps))
    if len(acting) < len(steps):  # no plan would hold the others
        steps = [step for step in steps if step.name in acting]
        patch = rewrite_plan(steps, sites, files, Safety.UNSAFE)
    row.edits = ", ".join(step.name for step in steps)
    if not steps:
        row.edits = "nothing"
        return
    row.over_plan, row.reached = _over_plan(original, patch, steps)
    proof = Prover(words, here, LIMIT_S, lambda _: None).prove(
        Plan(steps=tuple(steps), speedup=None, parity=None, fit=NOT_ASKED, sites=sites), files, Safety.UNSAFE
    )
    row.over_original = shown((proof.ratio.ratio, proof.ratio.low, proof.ratio.high) if proof.ratio else None)
    word = "passed" if proof.parity.passed else "failed" if proof.parity.decided else "not decided"
    row.parity = word if proof.parity.passed else f"{word}: {proof.parity.evidence}"


def _offered(name: str, seen: Observation) -> Numerics | None:
    """Return the class in which a session on this machine would try it; None: it would not."""
    try:
        best = max(get(name).candidates(seen), key=lambda each: each.prior)
    except DoesNotApply:
        return None
    return best.numerics if best.prior >= HOPELESS else None


def _planned(original: Program, steps: Sequence[PlanStep]) -> Program:
    plan = tuple(Candidate(name=s.name, params=s.params, numerics=s.numerics) for s in steps)
    return Program(
        name="plan",
        words=original.words,
        argv=tuple(resolve(original.words)),
        folder=original.folder,
        observation=original.observation,
        plan=plan,
    )


def _acting(planned: Program) -> set[str]:
    """Return the steps that are seen to act on the program."""
    if not planned.plan:
        return set()
    arm = start_arm(planned)
    try:
        arm.advance(LOOK_STEPS, discard=1, timeout_s=LOOK_S)
        return {effect.name for effect in arm.effects() if effect.on}
    finally:
        arm.end()


def _over_plan(original: Program, patch: Patch, steps: list[PlanStep]) -> tuple[str, str]:
    planned = _planned(original, steps)
    with patched_tree(original.folder, patch.after) as tree:
        words = patch.started_as(original.words)
        with inside(tree, dict(os.environ)):
            argv = tuple(resolve(words))
        patched = Program(
            name="patched",
            words=words,
            argv=argv,
            folder=tree,
            observation=original.observation,
            environment=patch.environment,
        )
        _, found = pairs((planned, patched), MIN_MARGIN, LIMIT_S, lambda _: None)
    ratio = found.ratio
    if ratio is None:
        return "-", "-"
    told = "yes" if ratio.ratio >= GOAL else "not told apart" if ratio.high >= GOAL else "no"
    return shown((ratio.ratio, ratio.low, ratio.high)), told


if __name__ == "__main__":
    main()
