"""How long the page of a very long session takes to open, in turns with one of a short session.

    python -m benchmarks.report_page [--write]

The long one has 100,000 steps, 8 ranks and 20 trials. Chromium opens each page anew, from a file, and is asked by the
page's own clock for two moments: loaded, and drawn. A factor between two
pages in turns says the same on a machine that others use; seconds do not.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from tests.report.rich_session import content

from benchmarks.tune.page import write
from hotloop.report.html.page import page
from hotloop.report.sections.all import document

TURNS = 9
MAX_MB, MAX_S = 6.0, 2.0
"""What the page may weigh, and take to open."""
WIDTH, HEIGHT = 1440, 900
_MOMENTS = """() => new Promise((done) => {
  const loaded = performance.getEntriesByType('navigation')[0].loadEventEnd;
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const shown = performance.now();
    done([loaded, shown].map((ms) => ms / 1000));
  }));
})"""


def main() -> None:
    """Print, or write, the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    with tempfile.TemporaryDirectory() as scratch:
        sizes = {"short": content(), "long": content(100_000, 8, 20)}
        files = {name: Path(scratch) / f"{name}.html" for name in sizes}
        for name, said in sizes.items():
            files[name].write_text(page(document(said), said.manual))
        weights = {name: file.stat().st_size / 1e6 for name, file in files.items()}
        lines = _table(weights, _opened(files))
    if parser.parse_args().write:
        write("report-page", "The page of a very long session", lines)
    else:
        print("\n".join(lines))


def _opened(files: dict[str, Path]) -> dict[str, list[list[float]]]:
    """Return seconds of the two moments, turn by turn."""
    from playwright.sync_api import sync_playwright

    found: dict[str, list[list[float]]] = {name: [] for name in files}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for turn in range(TURNS + 1):
            for name, file in files.items():
                moments = _moments(browser, file)
                if turn:  # the first starts the browser's own processes
                    found[name].append(moments)
        browser.close()
    return found


def _moments(browser: Any, file: Path) -> list[float]:
    opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    opened.goto(file.as_uri(), wait_until="load")
    moments: list[float] = opened.evaluate(_MOMENTS)
    opened.close()
    return moments


def _table(weights: dict[str, float], found: dict[str, list[list[float]]]) -> list[str]:
    rows = [
        f"| {name} | {weights[name]:.2f} | "
        + " | ".join(_spread([turn[at] for turn in turns]) for at in range(2))
        + " |"
        for name, turns in found.items()
    ]
    factors = [
        _spread([b[at] / a[at] for a, b in zip(found["short"], found["long"], strict=True)])
        for at in range(2)
    ]
    opened_s = median(turn[1] for turn in found["long"])
    kept = weights["long"] < MAX_MB and opened_s < MAX_S
    return [
        f"Each page was opened {TURNS} times, in turns, at {WIDTH} by {HEIGHT}: seconds since the navigation began, as",
        "median (smallest to largest). Long: 100,000 steps, 8 ranks, 20 trials; short: 600 steps, 1 rank, 8 trials.",
        "",
        "| page | MB | loaded | drawn |",
        "|---|---|---|---|",
        *rows,
        f"| long over short | {weights['long'] / weights['short']:.2f} | {' | '.join(factors)} |",
        "",
        f"The limits are {MAX_MB:.0f} MB and {MAX_S:.0f} s to open: {'kept' if kept else 'not kept'}.",
    ]


def _spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
