"""The before/after pages in `specs/`: one file an optimization, one section a shape of program.

A section holds the program before, and then either the program after, or a line `Already so:` or `Refused:` with words
that the reason has. An edit that is not written by itself has a line `Only with --unsafe.` before the program after.
Lines that all programs of a page share stand in its first block, under `## Setting`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "specs"


@dataclass(frozen=True)
class Spec:
    """One section.

    Attributes:
        name: of the page and the section.
        optimization: the step's name.
        params: of the step.
        before: the program.
        after: the program patched; None: it is left alone.
        outcome: `Edited`, `AlreadySo` or `Refused`.
        unsafe: whether the edit is written only with `--unsafe`.
        says: words of the reason.
    """

    name: str
    optimization: str
    params: dict[str, Any]
    before: str
    after: str | None
    outcome: str
    unsafe: bool
    says: str


def read_specs() -> list[Spec]:
    """Return the sections of all pages."""
    return [spec for page in sorted(FOLDER.glob("*.md")) for spec in _page(page)]


def _page(page: Path) -> list[Spec]:
    text = page.read_text()
    title = re.match(r"# (\w+)(?:\((.*)\))?\n", text)
    assert title, f"{page} begins with '# optimization(parameters)'"
    params = eval(f"dict({title[2] or ''})")
    specs, setting = [], ""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading = section.splitlines()[0]
        blocks = re.findall(r"^```python\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE)
        if heading == "Setting":
            setting = blocks[0]
            continue
        said = re.search(r"^(Already so|Refused): (.*)$", section, flags=re.MULTILINE)
        outcome = {"Already so": "AlreadySo", "Refused": "Refused"}[said[1]] if said else "Edited"
        slug = re.sub(r"\W+", "-", heading.lower()).strip("-")
        specs.append(
            Spec(
                name=f"{page.stem}-{slug}",
                optimization=title[1],
                params=params,
                before=blocks[0].replace("...setting...\n", setting),
                after=blocks[1].replace("...setting...\n", setting) if len(blocks) > 1 else None,
                outcome=outcome,
                unsafe="\nOnly with --unsafe.\n" in section,
                says=said[2] if said else "",
            )
        )
    return specs
