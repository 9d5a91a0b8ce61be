"""Screenshots of the sections of a real report for `docs/report.md`; run it where `hotloop demo` ran.

    hotloop demo && hotloop diagnose hotloop-demo/train.py
    python -m benchmarks.report_screenshots FOLDER     # the folder that holds their `.hotloop`

The limits are those of the newest `diagnose`, all else is of the newest `tune`.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from hotloop.model.origin import Origin
from hotloop.observe.run.origin import ORIGIN
from hotloop.report.content.content import ReportContent
from hotloop.report.html.page import page
from hotloop.report.sections.all import document
from hotloop.review.report_content import Prices, report_content
from hotloop.store.session import Session, sessions

DOCS = Path(__file__).parents[1] / "docs"
SECTIONS = (
    ("top", ".hero", "light"),
    ("plan", "#plan", "light"),
    ("step", "#step", "dark"),
    ("parity", "#parity", "dark"),
    ("timeline", "#timeline", "dark"),
    ("memory", "#memory", "light"),
    ("findings", "#findings", "light"),
    ("patch", "#patch", "dark"),
    ("ceilings", "#ceilings", "light"),
    ("trials", "#trials", "light"),
)
"""Name of the picture, what it is of, and the colours."""
WIDTH, HEIGHT, TALLEST = 1180, 900, 1150

OPEN_FIRST = (
    "(place) => { const first = document.querySelector(`${place} details`); if (first) first.open = true; }"
)
"""A finding, and a trial, with what is behind its click."""


def shoot(folder: Path) -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        files = {kind: Path(scratch) / f"{kind}.html" for kind in ("tune", "diagnose")}
        for kind, file in files.items():
            content = _newest(folder, kind)
            file.write_text(page(document(content), content.manual))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, place, scheme in SECTIONS:
            opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            opened.goto(files["diagnose" if name == "ceilings" else "tune"].as_uri())
            opened.evaluate(OPEN_FIRST, place)
            box = opened.locator(place).bounding_box()
            assert box is not None, f"the session has no {name}"
            box["height"] = min(box["height"], TALLEST)
            opened.screenshot(path=DOCS / f"report-{name}.png", full_page=True, clip=box)
            opened.close()
        browser.close()


def _newest(folder: Path, kind: str) -> ReportContent:
    for path in sessions(folder):
        with contextlib.closing(Session(path)) as session:
            of = session.get(ORIGIN, Origin)
            if of is not None and of.kind == kind:
                return report_content(session, Prices(per_hour=4.0), folder)
    raise SystemExit(f"no session of hotloop {kind} in {folder}")


if __name__ == "__main__":
    shoot(Path(sys.argv[1]))
