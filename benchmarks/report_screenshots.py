"""Screenshots of the sections of a real report for `docs/report.md`; run it on a session of `hotloop demo`.

python -m benchmarks.report_screenshots FOLDER     # the folder that holds the session's `.hotloop`
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from hotloop.cli.report_content import Prices, report_content
from hotloop.report.html.page import page
from hotloop.report.sections.all import document
from hotloop.store.session import find_session

DOCS = Path(__file__).parents[1] / "docs"
SECTIONS = (
    ("top", ".hero", "light"),
    ("plan", "#plan", "light"),
    ("step", "#step", "dark"),
    ("parity", "#parity", "dark"),
    ("timeline", "#timeline", "dark"),
    ("memory", "#memory", "light"),
)
"""Name of the picture, what it is of, and the colours."""
WIDTH, HEIGHT, TALLEST = 1180, 900, 1150


def shoot(folder: Path) -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    with contextlib.closing(find_session(folder)) as session:
        content = report_content(session, Prices(per_hour=4.0), folder)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        file = Path(scratch) / "report.html"
        file.write_text(page(document(content), content.manual))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, place, scheme in SECTIONS:
            opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            opened.goto(file.as_uri())
            opened.evaluate("hotloopReport.drawAll()")
            box = opened.locator(place).bounding_box()
            assert box is not None, f"the session has no {name}"
            box["height"] = min(box["height"], TALLEST)
            opened.screenshot(path=DOCS / f"report-{name}.png", full_page=True, clip=box)
            opened.close()
        browser.close()


if __name__ == "__main__":
    shoot(Path(sys.argv[1]))
