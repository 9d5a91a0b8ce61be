"""Ask TraceML (package `traceml-ai`) about the same programs, with the edits that its manual asks for.

Its answer is the `primary_diagnosis` of its summary: one of `INPUT_BOUND`, `H2D_BOUND`, `COMPUTE_BOUND`,
`RESIDUAL_HEAVY`, a straggler, or none. Lightning and the Hugging Face Trainer it instruments by itself; in a plain loop
the step is put under `traceml.trace_step(model)`. It reports at the end: each program ends itself after a while.

Which answer counts as right for which fault, in its favour: waiting for batches is `INPUT_BOUND`; what the user's own
code does in the step is `RESIDUAL_HEAVY`; a fault inside forward, backward or optimizer is `COMPUTE_BOUND`, although
that is also what it says of a program without one; evaluation may be either. A program without a fault is right where
neither input nor residual is blamed.
"""

from __future__ import annotations

import ast
import json
import tempfile
from pathlib import Path

from tests.faults.case import Base, Case
from tests.faults.inject import Tree, after_imports

from benchmarks.diagnosis.programs import patiently

SECONDS = 6.0
"""Of steps: at its sampling interval of 1 s more than its 20 steps for a confident answer."""
_LOUD = frozenset({"INPUT_BOUND", "H2D_BOUND", "RESIDUAL_HEAVY"})
_HOSTED = frozenset({"lightning_signals", "hf_causal", "bert_tagging"})
"""Bases whose loop is a framework's that TraceML instruments by itself."""


def run(case: Case, python: Path, folder: Path) -> None:
    """Keep what TraceML says of one program."""
    with tempfile.TemporaryDirectory(prefix="traceml-") as name:
        here = Path(name)
        (here / "train.py").write_text(edited(case), encoding="utf-8")
        words = [
            str(python.parent / "traceml"),
            "run",
            "--interval",
            "1",
            "--logs-dir",
            "logs",
            "--run-name",
            "it",
        ]
        if case.base.launcher:
            words += ["--nproc-per-node", "2"]
        arguments = ("--args", *case.base.arguments) if case.base.arguments else ()
        errors = patiently([*words, "train.py", *arguments], here)
        found = here / "logs" / "it" / "final_summary.json"
        said = json.loads(found.read_text()) if found.is_file() else {}
        answer = {"primary": said.get("primary_diagnosis"), "errors": errors[-400:] if not said else ""}
    (folder / f"{case.name}.traceml").write_text(json.dumps(answer), encoding="utf-8")


def edited(case: Case) -> str:
    """The program with TraceML's edits, ending itself after `SECONDS` of steps."""
    tree = ast.parse(case.source())
    for body, index in case.base.after_step(tree):
        body[index:index] = ast.parse(
            "STARTED.append(time.monotonic())\n"
            f"if STARTED[-1] - STARTED[0] > {SECONDS}:\n    raise SystemExit(0)"
        ).body
    if case.base.name not in _HOSTED:
        _trace_steps(tree, case.base)
        after_imports(tree, "import traceml_ai as traceml\ntraceml.init(mode='auto')")
    after_imports(tree, "import time\nSTARTED = []")
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def kind(answer: dict[str, object] | None) -> str:
    """Its answer in one word."""
    if answer is None:
        return ""
    primary = answer.get("primary")
    return str(primary.get("kind", "?")) if isinstance(primary, dict) else "no answer"


def right(case: Case, said: str) -> bool:
    """Whether its answer names the part of the step that the fault is in."""
    if case.fault is None:
        return said not in _LOUD and said != "no answer"
    return said in case.fault.categories


def _trace_steps(tree: Tree, base: Base) -> None:
    """Put the body of the innermost loop, or else function, that takes the step under `trace_step`."""
    block, _ = base.after_step(tree)[0]
    owner = _owner(tree, block)
    traced = ast.parse(f"with traceml.trace_step({base.model}):\n    pass").body[0]
    assert isinstance(traced, ast.With)
    traced.body, owner.body = owner.body, [traced]


def _owner(tree: Tree, block: list[ast.stmt]) -> ast.For | ast.FunctionDef:
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.For, ast.FunctionDef))
        and any(getattr(below, "body", None) is block for below in ast.walk(node))
    ]
    # ast.walk goes outside in, so that the last is the innermost
    return around[-1]
