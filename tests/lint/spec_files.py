"""Read the spec files: prose, source with its findings marked, source before and after a fix."""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent / "specs"
MARK = "# <-"
_PRELUDE = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

"""
_SECTION = re.compile(r"^## (?P<head>.+?)\n+```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Case:
    """One section of a spec: a title and a source text."""

    title: str
    source: str

    @property
    def marked_lines(self) -> list[int]:
        return [number for number, line in enumerate(self.source.splitlines(), 1) if line.endswith(MARK)]


@dataclass(frozen=True)
class Fix:
    """Source before and after the fix, and how safe the spec says it is."""

    safety: str
    before: str
    after: str


@dataclass(frozen=True)
class Spec:
    """What one rule must and must not find."""

    family: str
    code: str
    found: list[Case] = field(default_factory=list)
    fine: list[Case] = field(default_factory=list)
    fixes: list[Fix] = field(default_factory=list)


def read_spec(path: Path) -> Spec:
    spec = Spec(path.parent.name, path.stem)
    sections = [
        (m["head"], _with_imports(m["code"])) for m in _SECTION.finditer(path.read_text(encoding="utf-8"))
    ]
    for place, (head, source) in enumerate(sections):
        if head.startswith("found"):
            spec.found.append(Case(head, source))
        elif head.startswith("fine"):
            spec.fine.append(Case(head, source))
        elif head.startswith("before"):
            assert sections[place + 1][0] == "after", f"{path}: 'before' without 'after'"
            spec.fixes.append(Fix(head.partition("(")[2].rstrip(")"), source, sections[place + 1][1]))
    return spec


def _with_imports(source: str) -> str:
    """The usual imports, less those that the source makes itself."""
    own = source.splitlines()
    names = {line.rpartition(" ")[2] for line in own if line.startswith(("import ", "from "))}
    kept = [
        line
        for line in _PRELUDE.splitlines()
        if not (names & set(re.findall(r"\w+", line.partition("import")[2])))
    ]
    return "\n".join(kept) + "\n\n" + source


def all_specs() -> list[Spec]:
    return [read_spec(path) for path in sorted(ROOT.rglob("*.md"))]
