"""The page in a real browser: charts draw, links lead somewhere, nothing is fetched, everybody can read it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotloop.report.html.page import page
from hotloop.report.sections.all import document
from hotloop.report.sections.comparison import comparison_document

from ..conftest import BROWSERS
from .rich_session import attached, comparison, content

CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
AXE = os.environ.get("HOTLOOP_AXE", "")
"""Path of axe-core's `axe.min.js`; `.ci/run` fetches it."""
MAX_BYTES = 6_000_000
_SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
]
_UNDRAWN = (
    "[...document.querySelectorAll('.chart')]"
    ".filter((box) => ![...box.querySelectorAll('circle, path, rect, i')]"
    ".some((one) => one.getBoundingClientRect().width > 1))"
    ".map((box) => box.ariaLabel)"
)
_DRAWN = """(() => {
  const strokes = [...document.querySelectorAll('.chart svg path')].map((path) => path.getAttribute('d').length);
  return { elements: document.querySelectorAll('*').length, strokes: strokes.reduce((sum, one) => sum + one, 0) };
})()"""
"""What a browser has to lay out and to draw."""
_OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true })"
CHARTS = {"tuned": 6, "observed": 6, "compared": 2, "attached": 1}
"""Pages, and how many charts they have at least."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: the page was not looked at in a browser"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, without anything of its own that would use the network."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=_SWITCHES)
        yield started
        started.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of a tuning session, an observation, a very long session, a comparison and a process looked at."""
    folder = tmp_path_factory.mktemp("pages")
    sizes = {"tuned": content(), "observed": content(tuned=False), "long": content(100_000, 8, 20)}
    made = {}
    for name, said in sizes.items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(page(document(said), said.manual))
    for name, shape in (("compared", comparison_document(comparison())), ("attached", document(attached()))):
        made[name] = folder / f"{name}.html"
        made[name].write_text(page(shape, {}))
    return made


class Opened:
    """A page, and what went wrong on it."""

    def __init__(
        self, browser: Any, file: Path, *, width: int = 1440, scheme: str = "light", scripts: bool = True
    ) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        size = {"width": width, "height": 900}
        self.page = browser.new_page(viewport=size, color_scheme=scheme, java_script_enabled=scripts)
        self.page.on("console", self._told)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri(), wait_until="load")

    def _told(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.page.close()

    def ask(self, script: str) -> Any:
        return self.page.evaluate(script)


@pytest.mark.parametrize("width", [360, 420, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_draws_and_nothing_goes_wrong(
    name: str, scheme: str, width: int, browser: Any, files: dict[str, Path]
) -> None:
    with Opened(browser, files[name], width=width, scheme=scheme) as opened:
        opened.ask(_OPEN_ALL)
        assert opened.ask(_UNDRAWN) == []
        assert opened.ask("document.querySelectorAll('.chart').length") >= CHARTS[name]
        assert opened.ask("document.documentElement.scrollWidth - innerWidth") <= 0, "wider than the screen"
        assert opened.errors == []
        assert opened.requests == [files[name].as_uri()], "nothing is fetched"


_UNREACHED = """[...document.querySelectorAll('body *')].filter((one) => {
  const { overflowX, overflowY } = getComputedStyle(one);
  const scrolls = (size, shown, how) => size > shown && ["auto", "scroll"].includes(how);
  return one.tabIndex < 0 && (scrolls(one.scrollWidth, one.clientWidth, overflowX)
    || scrolls(one.scrollHeight, one.clientHeight, overflowY));
}).map((one) => one.textContent.slice(0, 80))"""


@pytest.mark.parametrize("width", [280, 360, 1440])
@pytest.mark.parametrize("name", CHARTS)
def test_the_keyboard_reaches_whatever_scrolls(
    name: str, width: int, browser: Any, files: dict[str, Path]
) -> None:
    with Opened(browser, files[name], width=width) as opened:
        opened.ask(_OPEN_ALL)
        assert opened.ask(_UNREACHED) == []


def test_links_lead_to_what_they_name_and_open_it(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["tuned"]) as opened:
        links = "[...document.querySelectorAll('a')]"
        assert opened.ask(f"{links}.filter((one) => !document.getElementById(one.hash.slice(1))).length") == 0
        opened.ask("document.getElementById('finding-1').open = true")
        opened.page.click("#finding-1 .links a")
        opened.page.wait_for_function("document.getElementById('manual-anomaly-mode-on').open")


def test_a_trial_shows_its_raw_samples_behind_a_click(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["tuned"]) as opened:
        opened.page.click("#trial-1 > summary")
        assert opened.page.locator("#trial-1 .chart circle").first.is_visible()
        assert opened.page.locator("#trial-1 tbody tr").count() == 16


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_there_before_any_script_runs(name: str, browser: Any, files: dict[str, Path]) -> None:
    """As a mail client, a CI server's artifact viewer, or a capture shows the page."""
    with Opened(browser, files[name], scripts=False) as opened:
        pictures = opened.page.locator("main > section > figure > .chart")
        assert pictures.count() >= 1
        for number in range(pictures.count()):
            marks = pictures.nth(number).locator("circle, path, rect, i")
            assert marks.count()
            assert any(marks.nth(at).bounding_box() for at in range(min(30, marks.count())))


def test_charts_are_printed(browser: Any, files: dict[str, Path], tmp_path: Path) -> None:
    with Opened(browser, files["tuned"]) as opened:
        opened.page.emulate_media(media="print")
        assert opened.ask(_UNDRAWN.replace("'.chart'", "'main > section > figure > .chart'")) == []
        opened.page.pdf(path=tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").stat().st_size > 50_000


def test_the_theme_is_switched_by_hand(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["tuned"]) as opened:
        before = opened.ask("getComputedStyle(document.body).backgroundColor")
        opened.page.click("#theme")
        assert opened.ask("getComputedStyle(document.body).backgroundColor") != before


def test_a_dark_page_is_printed_light(browser: Any, files: dict[str, Path]) -> None:
    ink = "getComputedStyle(document.querySelector('.bars .row')).color"
    with Opened(browser, files["tuned"], scheme="dark") as opened:
        dark = opened.ask(ink)
        opened.page.emulate_media(media="print", color_scheme="dark")
        assert opened.ask(ink) != dark
        opened.page.emulate_media(media="screen", color_scheme="dark")
        assert opened.ask(ink) == dark
        opened.ask("dispatchEvent(new Event('beforeprint'))")
        opened.ask("dispatchEvent(new Event('afterprint'))")
        assert opened.ask("document.documentElement.dataset.theme") is None


def test_a_chart_is_enlarged_by_keyboard(browser: Any, files: dict[str, Path]) -> None:
    width = "document.querySelector('.flames .inner').offsetWidth"
    with Opened(browser, files["tuned"]) as opened:
        before = opened.ask(width)
        opened.ask(
            "document.querySelector('.flames').parentElement.querySelector('.zoom button:last-child').focus()"
        )
        opened.page.keyboard.press("Enter")
        assert opened.ask(width) == pytest.approx(2 * before, abs=2)
        assert opened.ask("document.querySelector('.flames .plot').tabIndex") == 0
        opened.page.keyboard.press("Shift+Tab")
        opened.page.keyboard.press("Enter")
        assert opened.ask(width) == before


def test_a_box_of_a_flame_graph_is_enlarged_by_a_click(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["tuned"]) as opened:
        box = opened.page.locator(".flames i").nth(3)
        box.click()
        plot = opened.page.locator(".flames .plot").first.bounding_box()
        found = box.bounding_box()
        assert found is not None
        assert plot is not None
        assert found["width"] == pytest.approx(plot["width"], rel=0.03)
        assert found["x"] == pytest.approx(plot["x"], abs=0.03 * plot["width"])


def test_a_script_that_slipped_in_would_not_run(browser: Any, files: dict[str, Path]) -> None:
    spoiled = files["tuned"].with_name("spoiled.html")
    foreign = "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'></main>"
    spoiled.write_text(files["tuned"].read_text().replace("</main>", foreign))
    with Opened(browser, spoiled) as opened:
        assert opened.ask("window.ran") is None
        assert any("Content Security Policy" in error for error in opened.errors)


def test_a_hundred_thousand_steps_of_eight_ranks_are_thinned_out(
    browser: Any, files: dict[str, Path]
) -> None:
    assert files["long"].stat().st_size < MAX_BYTES
    with Opened(browser, files["long"]) as opened:
        loaded_ms = opened.ask("performance.getEntriesByType('navigation')[0].loadEventEnd")
        size = files["long"].stat().st_size / 1e6
        print(f"{size:.1f} MB, opened in {loaded_ms:.0f} ms")
        assert opened.errors == []
        many = opened.ask(_DRAWN)
    with Opened(browser, files["tuned"]) as opened:
        few = opened.ask(_DRAWN)
    # In terms that no neighbour's load changes: 1300 times the steps, and hardly more to draw than of 600.
    assert many["elements"] < 2 * few["elements"]
    assert many["strokes"] - few["strokes"] < 8 * 1400 * 16, "points of eight ranks, sixteen characters each"


@pytest.mark.skipif(
    not Path(AXE).is_file(), reason="no axe-core ($HOTLOOP_AXE): accessibility was not judged"
)
@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", CHARTS)
def test_axe_finds_no_serious_fault(
    name: str, scheme: str, width: int, browser: Any, files: dict[str, Path]
) -> None:
    with Opened(browser, files[name], width=width, scheme=scheme) as opened:
        opened.ask(_OPEN_ALL)
        # The policy keeps foreign scripts out of the page: axe comes in through the browser.
        opened.ask(Path(AXE).read_text())
        found = opened.ask("axe.run(document, { resultTypes: ['violations'] })")
        serious = [one for one in found["violations"] if one["impact"] in {"serious", "critical"}]
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in serious] == []
