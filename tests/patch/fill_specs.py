"""Write what comes out into pages whose sections have no second block yet: `python -m tests.patch.fill_specs`.

What it writes has to be read: a page is a promise, not a record.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from hotloop.model.safety import Safety
from hotloop.model.sites import Sites
from hotloop.source.outcome import AlreadySo, Edited, Refused

from .observing import observe_all
from .spec_files import FOLDER, Spec, read_specs
from .test_specs import patched


def _result(spec: Spec, sites: Sites) -> str:
    patch = patched(spec, sites)
    outcome = patch.outcomes[0].outcome
    if isinstance(outcome, Refused):
        return f"Refused: {outcome.reason}\n"
    if isinstance(outcome, AlreadySo):
        return f"Already so: {outcome.where}\n"
    unsafe = "Only with --unsafe.\n\n" * (isinstance(outcome, Edited) and outcome.safety is Safety.UNSAFE)
    return f"{unsafe}```python\n{patch.after['train.py'].decode()}```\n"


def main() -> None:
    """Fill all pages."""
    open_ = [spec for spec in read_specs() if spec.after is None and not spec.says]
    with tempfile.TemporaryDirectory() as folder:
        observed = observe_all({spec.name: spec.before for spec in open_}, Path(folder))
        results = {spec.name: _result(spec, observed[spec.name]) for spec in open_}
    for page in FOLDER.glob("*.md"):
        text = page.read_text()
        setting = (
            text.split("## Setting")[1].split("```python\n")[1].split("```")[0]
            if "## Setting" in text
            else ""
        )
        head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
        shown = [_filled(page.stem, section, results, setting) for section in sections]
        page.write_text(head + "\n".join(section.rstrip("\n") + "\n" for section in shown))


def _filled(page: str, section: str, results: dict[str, str], setting: str) -> str:
    slug = re.sub(r"\W+", "-", section.splitlines()[0].removeprefix("## ").lower()).strip("-")
    result = results.get(f"{page}-{slug}")
    if result is None:
        return section
    return (
        f"{section.rstrip()}\n\n{result.replace(setting, '...setting...' + chr(10)) if setting else result}"
    )


if __name__ == "__main__":
    main()
