"""A report says the same in every form, and whatever a program wrote into it stays text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from markdown_it import MarkdownIt

from hotloop.cli.files import json_text
from hotloop.model.comparison import Change, Comparison, TunedSide
from hotloop.model.foreign_text import encodable, inert_json
from hotloop.model.gate import GateVerdict
from hotloop.model.monitors import Monitor
from hotloop.model.observation import Coverage
from hotloop.model.operators import DetailedTimeline, TimelineLane
from hotloop.model.optimization import Refusal
from hotloop.model.origin import CodeState
from hotloop.model.outcome import Outcome
from hotloop.model.quantities import byte_size, duration, percent
from hotloop.model.ratio import Ratio
from hotloop.model.step_series import TimelineSpan
from hotloop.report.content.content import HeldSteps, ReportContent
from hotloop.report.content.figures import long_duration, money, speedup
from hotloop.report.content.headline import savings
from hotloop.report.content.ratios import told_gain
from hotloop.report.document import Block, Chart, Details, Document, Facts, Section, Table
from hotloop.report.gate import annotation, gate_markdown, junit
from hotloop.report.html.page import page
from hotloop.report.markdown import LEFT_OUT, markdown
from hotloop.report.sections.all import document
from hotloop.report.sections.comparison import comparison_document
from hotloop.report.terminal.report import render

from ..model.hostile import STRINGS, raw_in
from .results import shown
from .rich_session import comparison, content
from .test_screens import INTERNAL

HOSTILE = (
    *STRINGS,
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</title><body onload=alert(1)>",
    "javascript:alert(1)",
    "&lt;b&gt; &amp; &#x3c;",
    "{{ 7 * 7 }} {% raw %} {# x #}",
    "${7*7} #{7*7} <%= 7 %>",
    "![x](http://evil/x.png)",
    "[x](javascript:alert(1))",
    "| a | b |\n|---|---|",
    "```\n# out of the fence\n```",
    "</details><h1>out</h1>",
    "# heading\n\n---",
    "@everyone #1 c0ffee",
    "a" * 100_000,
    "``````````" * 30,
)
_TEXT = {"text", "text_special", "softbreak", "code_inline"}
_ELEMENTS = {"script", "img", "svg", "iframe", "object", "embed", "form", "input", "base", "link"}


class _Seen(HTMLParser):
    """Elements with their attributes, and text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(f"{tag} {sorted(name for name, _ in attrs)}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _parsed(text: str) -> _Seen:
    seen = _Seen()
    seen.feed(text)
    return seen


def _words(html: str) -> list[str]:
    """What a browser shows of a page, element by element."""
    return _parsed(re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)).text


def _visible(text: str) -> str:
    """What a browser shows of a page, its scripts left out, blanks folded."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return " ".join("".join(_parsed(body).text).split())


def _tables(blocks: tuple[Block, ...]) -> list[Table]:
    found: list[Table] = []
    for block in blocks:
        if isinstance(block, Table):
            found.append(block)
        elif isinstance(block, Chart) and block.table is not None:
            found.append(block.table)
        elif isinstance(block, Details):
            found += _tables(block.blocks)
    return found


def test_charts_have_their_figures_for_who_cannot_see_them() -> None:
    """But for those whose figures stand in a table beside them, and pictures of thousands of boxes."""
    shapes = (document(content()), comparison_document(comparison()))
    bare = {
        chart.title
        for shape in shapes
        for section in shape.sections
        if section.anchor != "trials" or shape is shapes[1]
        for chart in section.blocks
        if isinstance(chart, Chart) and chart.table is None and chart.kind not in {"timeline", "flame"}
    }
    assert bare == {
        "Departure from the original, per cent of its loss",
        "Memory over 2 steps, before and after",
    }


def _facts(blocks: tuple[Block, ...]) -> list[str]:
    return [text for block in blocks if isinstance(block, Facts) for _, text in block.rows]


@pytest.mark.parametrize("tuned", [True, False])
def test_figures_agree_in_page_markdown_json_and_terminal(tuned: bool) -> None:
    said = content(tuned=tuned)
    shape = document(said)
    html = _visible(page(shape, said.manual))
    text = re.sub(r"\\(.)", r"\1", markdown(shape)).replace("&lt;", "<").replace("&amp;", "&")
    terminal = " ".join(shown(render(shape), width=400).split())
    for tile in shape.tiles:
        for figure in (tile.value, tile.detail):
            assert figure in html
            assert figure in text
            assert figure in terminal
    for section in shape.sections:
        assert section.lead in html
        if section.anchor in LEFT_OUT:
            continue
        cells = [cell for table in _tables(section.blocks) for row in table.rows for cell in row]
        for figure in (*cells, *_facts(section.blocks)):
            assert " ".join(figure.split()) in html
            assert " ".join(figure.split()) in text
    figures = json.loads(msgspec.json.encode(said.without_series()))
    everywhere = list(_said_everywhere(figures))
    assert len(everywhere) > (9 if tuned else 2)
    for figure in everywhere:
        assert figure in html
        assert figure in text
        assert figure in terminal
    for figure in _said_on_the_page(figures):
        assert figure in html
    assert "series" not in figures["observation"] or not figures["observation"]["series"]


@pytest.mark.parametrize("tuned", [True, False])
def test_internal_names_are_on_no_page(tuned: bool) -> None:
    said = content(tuned=tuned)
    shape = document(said)
    assert [words for words in _words(page(shape, {})) if INTERNAL.search(words)] == []
    plain = re.sub(r"\\(.)", r"\1", markdown(shape))
    assert [line for line in plain.splitlines() if INTERNAL.search(line)] == []


def _said_everywhere(figures: dict[str, Any]) -> Iterator[str]:
    """Figures of the JSON as every rendering writes them."""
    head, seen, tuning = figures["headline"], figures["observation"], figures["tuning"]
    yield duration(head["step_before_s"])
    yield duration(seen["step"]["median_s"])
    if tuning is None:
        for phase in seen["phases"].values():
            yield percent(phase["share"])
        return
    whole = speedup(Ratio(**head["speedup"]))
    assert whole == speedup(Ratio(**tuning["plan"]["speedup"]))
    yield whole
    yield duration(head["step_after_s"])
    for step in tuning["plan"]["steps"]:
        yield speedup(Ratio(step["ratio"], step["low"], step["high"]))
    yield long_duration(figures["savings"]["saved_s"])
    yield money(figures["savings"]["money"])


def _said_on_the_page(figures: dict[str, Any]) -> Iterator[str]:
    """Figures of the JSON that only the page has room for."""
    seen, tuning = figures["observation"], figures["tuning"]
    for name in ("p50_s", "p95_s", "p99_s"):
        yield duration(seen["step"][name])
    yield byte_size(seen["memory"]["peak_bytes"])
    yield byte_size(seen["deep"]["memory"]["peak_bytes"])
    for phase in seen["deep"]["memory"]["phases"].values():
        yield byte_size(phase["peak_bytes"])
    for module in seen["deep"]["memory"]["modules"][:1]:
        yield module["path"]
    for one in seen["deep"]["operators"]["operators"]:
        yield duration(one["self_s"])
    for site in seen["deep"]["call_sites"]["sites"]:
        yield duration(site["time_per_step_s"])
    for finding in figures["findings"]:
        yield duration(finding["cost_s"])
        if finding["gain"] is not None:
            yield f"{told_gain(Ratio(**finding['gain']))}, predicted"
    if tuning is not None:
        for peak in tuning["peak_bytes"]:
            yield byte_size(peak)
        for trial in tuning["trials"]:
            if trial["ratio"] is not None:
                yield speedup(Ratio(**trial["ratio"]))
        yield tuning["plan"]["parity"]["evidence"]
        for refusal in tuning["refused"]:
            yield refusal["reason"]


def _poisoned(text: str) -> ReportContent:
    """A report in which everything that the program or its folder can name is that string."""
    said = content()
    assert said.observation is not None
    assert said.tuning is not None
    assert said.origin is not None
    assert said.observation.deep is not None
    host = said.observation.deep.host
    assert host is not None
    replace = msgspec.structs.replace
    found = said.observation.deep
    assert found.operators is not None
    assert found.call_sites is not None
    assert found.memory is not None
    assert found.memory.modules is not None
    lanes = tuple(
        TimelineLane(kind=kind, number=1, spans=(TimelineSpan(text, 0.0, 1.0, 0),), busy_s=1.0)
        for kind in ("operators", "device")
    )
    deep = replace(
        found,
        host=replace(host, frames=tuple(replace(one, path=text, function=text) for one in host.frames)),
        operators=replace(
            found.operators,
            operators=tuple(replace(one, name=text) for one in found.operators.operators),
            timeline=DetailedTimeline(window_s=1.0, num_spans=2, lanes=lanes),
        ),
        call_sites=replace(
            found.call_sites,
            sites=tuple(replace(one, path=text, function=text, call=text) for one in found.call_sites.sites),
        ),
        memory=replace(
            found.memory, modules=tuple(replace(one, path=text, cls=text) for one in found.memory.modules[:1])
        ),
    )
    machine = {"cpu_model": text, "os": text, "accelerators": [{"name": text}]}
    program = replace(said.observation.program, environment={"OMP_NUM_THREADS": text})
    trials = tuple(
        replace(one, decision=text, candidate=replace(one.candidate, params={"x": text}))
        for one in said.tuning.trials
    )
    failed = said.tuning.trials[6].outcome
    trials = (
        *trials[:6],
        replace(trials[6], outcome=replace(failed, log_end=text, message=text)),
        *trials[7:],
    )
    finding = replace(said.findings[0], path=text, title=text, evidence=text)
    return replace(
        said,
        session=text,
        origin=replace(
            said.origin,
            words=("python", text),
            folder=text,
            packages={text: text},
            checks=tuple(replace(one, seen=text) for one in said.origin.checks),
            code=CodeState(commit=text, branch=text, changed=(text,)),
        ),
        after=None,
        observation=replace(
            said.observation, deep=deep, program=program, command=("python", text), machine=machine
        ),
        held={"switch": (HeldSteps((text,), (0.1, 0.2)),)},
        why_no_patch=text,
        missing=(Coverage(text, text),),
        tuning=replace(said.tuning, trials=trials, coverage=(text,), refused=(Refusal(text, text),)),
        findings=(finding, *said.findings[1:]),
        excerpts=(replace(said.excerpts[0], path=text, text=text.replace("\n", " ")),),
        patch=text,
    )


_BOX = "span ['aria-label', 'class', 'role', 'tabindex']"
"""What a text gets that is long, whatever it says."""


class _Expected:
    """What a report of harmless strings is made of."""

    def __init__(self) -> None:
        said = _poisoned("plain")
        shape = document(said)
        self.html = page(shape, said.manual)
        self.elements = _elements(self.html)
        self.markdown = _structure(markdown(shape))


def _elements(html: str) -> list[str]:
    return [one for one in _parsed(html).elements if one != _BOX]


@pytest.fixture(scope="module")
def expected() -> _Expected:
    return _Expected()


def test_there_are_fifty_hostile_strings() -> None:
    assert len(set(HOSTILE)) >= 50


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:24]))
def test_hostile_strings_stay_text(text: str, expected: _Expected) -> None:
    said = _poisoned(text)
    shape = document(said)
    html = page(shape, said.manual)
    elements = _elements(html)
    if len(text.splitlines()) <= 1:
        assert elements == expected.elements, "not an element more, not an attribute more"
    assert not any(tag.split()[0] in _ELEMENTS - {"script", "svg"} for tag in elements)
    for drawn in ("<script", "<svg"):
        assert html.count(drawn) == expected.html.count(drawn)
    assert not raw_in(_one_line(html)) - set(expected.html)
    assert not raw_in(shown(render(shape)))
    assert _structure(markdown(shape)) == expected.markdown
    assert not raw_in(_one_line(markdown(shape)))
    plain = msgspec.json.encode(encodable(said.without_series())).decode()
    inert = inert_json(plain)
    assert not raw_in(inert)
    assert json.loads(inert) == json.loads(plain)


def _poisoned_comparison(text: str) -> Comparison:
    said = comparison()
    replace = msgspec.structs.replace
    before, after = (replace(side, name=text, command=("python", text)) for side in (said.before, said.after))
    tuned = TunedSide(steps={text: Ratio(1.2, 1.1, 1.3)}, speedup=Ratio(1.2, 1.1, 1.3), learns_the_same=None)
    return replace(
        said,
        before=before,
        after=after,
        reason=text,
        changes=(Change(text, text, text),),
        code=(text.replace("\n", " "),),
        tuned=(tuned, None),
    )


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:24]))
def test_hostile_strings_stay_text_in_comparisons(text: str) -> None:
    shape, harmless = (comparison_document(_poisoned_comparison(one)) for one in (text, "plain"))
    html, expected = page(shape, {}), page(harmless, {})
    assert _elements(html) == _elements(expected)
    assert not raw_in(_one_line(html)) - set(expected)
    assert not raw_in(shown(render(shape)))
    assert _structure(markdown(shape)) == _structure(markdown(harmless))


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:24]))
def test_hostile_strings_stay_text_in_the_verdict_of_a_gate(text: str) -> None:
    def verdict(said: str) -> GateVerdict:
        return GateVerdict(
            outcome=Outcome.FAILED,
            passed=False,
            proven=True,
            slowdown=Ratio(1.2, 1.1, 1.3),
            margin=0.05,
            before_s=0.1,
            now_s=0.12,
            num_runs=(3, 3),
            sentence=said,
            command=("python", said),
        )

    suite = ElementTree.fromstring(junit(verdict(text)))
    assert [one.tag for one in suite.iter()] == ["testsuite", "testcase", "failure", "system-out"]
    assert annotation(verdict(text)).count("\n") == 1
    assert _structure(gate_markdown(verdict(text))) == _structure(gate_markdown(verdict("plain")))
    for written in (junit(verdict(text)), annotation(verdict(text)), gate_markdown(verdict(text))):
        assert not raw_in(_one_line(written))


def _one_line(text: str) -> str:
    return text.replace("\n", "").replace("\t", "")


def _structure(text: str) -> list[str]:
    """Blocks, and within them everything that is no text."""
    found = []
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        found.append(token.type)
        found += [one.type for one in token.children or () if one.type not in _TEXT]
    return found


def test_energy_is_priced_and_has_a_figure_of_its_own() -> None:
    said = content()
    seen = said.observation
    assert seen is not None
    assert seen.monitors is not None
    power = Monitor(mean=250.0, p95=300.0, max=310.0, samples=())
    monitors = msgspec.structs.replace(seen.monitors, metrics={"cpu_power_w": power})
    seen = msgspec.structs.replace(seen, monitors=monitors)
    saved = savings(seen, said.tuning, price_per_hour=None, power_price=0.4)
    assert saved is not None
    assert saved.energy_kwh == pytest.approx(250 * saved.saved_s / 3.6e6)
    assert saved.money == pytest.approx(0.4 * saved.energy_kwh)
    tiles = {tile.name: tile.value for tile in document(msgspec.structs.replace(said, savings=saved)).tiles}
    assert tiles["energy saved"] == f"{250 * saved.saved_s / 3600:.3g} Wh"


def test_secrets_are_not_shown() -> None:
    key = "ghp_" + "a1B2" * 9
    said = _poisoned(f"clone https://ada:{key}@example.org")
    shape = document(said)
    assert key not in page(shape, {})
    assert key not in markdown(shape)
    assert key not in shown(render(shape), width=400)
    assert key not in json_text(said.without_series())


def test_an_empty_plan_and_a_session_without_steps_are_said() -> None:
    said = content()
    assert said.tuning is not None
    empty = msgspec.structs.replace(
        said.tuning, plan=msgspec.structs.replace(said.tuning.plan, steps=(), speedup=None)
    )
    shape: Document = document(msgspec.structs.replace(said, tuning=empty, sets=(), savings=None))
    assert "no change was proven faster, so the program stays as it is" in markdown(shape)
    bare = msgspec.structs.replace(
        said, tuning=None, observation=None, findings=(), excerpts=(), sets=(), losses=None, patch=None
    )
    assert "What was not measured" in markdown(document(bare))


def test_only_a_long_text_gets_a_box_that_scrolls_and_the_keyboard_reaches_it() -> None:
    long = "long " * 120
    blocks = (Facts((("short", "a word"), ("long", long))), Table(("a", "b"), (("a word", long),)))
    section = Section(anchor="one", title="one", blocks=blocks)
    shape = Document(title="t", subtitle="", verdict="v", good=None, tiles=(), sections=(section,), footer="")
    held = re.findall(r'<span class="tall" tabindex="0"[^>]*><bdi>(.*?)</bdi>', page(shape, {}))
    assert held == [long, long]
