"""What a case is: a base program with one known fault, or none."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.faults.inject import Place, Tree, calls, places

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Base:
    """A program without a fault, and what its names are."""

    name: str
    model: str
    """How the model is written where the optimizer steps."""
    inputs: str
    output: str
    """How the model's output is written before the backward pass."""
    step_at: str = ""
    """Text of the statement after which a step is done; empty: the call of a `step()` that is no scheduler's."""
    backward_at: str = ""
    """Text of the statement that begins the backward pass; empty: the call of a `backward()`."""
    path: Path | None = None
    fresh: bool = False
    launcher: tuple[str, ...] = ()
    """What stands before the script: `torchrun --nproc-per-node 2`."""
    arguments: tuple[str, ...] = ()
    """What stands behind it, so that it trains for long."""

    @property
    def source(self) -> str:
        """Its text."""
        folder = "bases/fresh" if self.fresh else "bases"
        return (self.path or _HERE / folder / f"{self.name}.py").read_text(encoding="utf-8")

    def after_step(self, tree: Tree) -> list[Place]:
        """Where something can be inserted that happens once a step, after it."""
        found = places(tree, self.step_at) if self.step_at else calls(tree, _steps)
        return [(body, index + 1) for body, index in found]

    def before_backward(self, tree: Tree) -> list[Place]:
        """Where something can be inserted that happens between forward and backward."""
        if self.backward_at:
            return places(tree, self.backward_at)
        return calls(tree, lambda call: call.attr == "backward")


@dataclass(frozen=True)
class Fault:
    """One known fault."""

    name: str
    expected: frozenset[str]
    """The codes that would be right."""
    inject: Callable[[Tree, Base], None]
    categories: frozenset[str] = frozenset({"COMPUTE_BOUND"})
    """What TraceML would be right to call it."""
    sites: tuple[str, ...] = ()
    """Texts of lines that are as right as the injected ones: the loader's, where its setting is the fault."""


@dataclass(frozen=True)
class Case:
    """A base program with one fault, or none."""

    base: Base
    fault: Fault | None

    @property
    def name(self) -> str:
        """Base and fault in one word."""
        return f"{self.base.name}+{self.fault.name if self.fault else 'clean'}"

    @property
    def words(self) -> tuple[str, ...]:
        """The command, as a user types it beside the program's file."""
        return (*self.base.launcher, "train.py", *self.base.arguments)

    def source(self) -> str:
        """The program's text."""
        tree = ast.parse(self.base.source)
        if self.fault is not None:
            self.fault.inject(tree, self.base)
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"

    def lines(self) -> frozenset[int]:
        """The numbers of the lines that a finding may name: the injected ones, and those as right."""
        clean = ast.unparse(ast.parse(self.base.source)).splitlines()
        text = self.source().splitlines()
        matcher = difflib.SequenceMatcher(a=clean, b=text, autojunk=False)
        found = {
            number + 1
            for tag, _, _, begin, end in matcher.get_opcodes()
            if tag in {"insert", "replace"}
            for number in range(begin, end)
        }
        sites = self.fault.sites if self.fault else ()
        return frozenset(found | {n for n, line in enumerate(text, 1) if any(site in line for site in sites)})

    def others(self) -> dict[str, str]:
        """Further files of the program, by name."""
        return {}

    def places(self) -> frozenset[tuple[str, int]]:
        """The lines that a finding may name, by file."""
        return frozenset(("train.py", line) for line in self.lines())

    def write(self, folder: Path) -> Path:
        """Write its files to a folder; return the script's path."""
        for name, text in {"train.py": self.source(), **self.others()}.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder / "train.py"


def _steps(call: ast.Attribute) -> bool:
    return call.attr == "step" and "sched" not in ast.unparse(call.value)
