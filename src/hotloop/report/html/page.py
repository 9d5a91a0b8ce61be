"""The page: the template filled, scripts and styles put in, and nothing else allowed to run."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hotloop.report.document import Block, Chart, Details, Document, More
from hotloop.report.html.manual import manual_html

_PACKAGE = "hotloop.report.html"


def page(document: Document, manual: dict[str, str]) -> str:
    """Return the page.

    Args:
        document: what it shows.
        manual: pages by name, as Markdown; links to them stay inside the page.
    """
    scripts = [_asset("assets/echarts.min.js"), _asset("draw.js"), _asset("page.js")]
    environment = Environment(
        loader=PackageLoader(_PACKAGE, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["identity"] = id
    environment.globals["kind"] = lambda block: block.__struct_config__.tag
    return environment.get_template("page.html.j2").render(
        document=document,
        manual={name: Markup(manual_html(text)) for name, text in sorted(manual.items())},
        style=Markup(_asset("page.css")),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        charts=Markup(_json(_numbered(document))),
        chart_id=_ids(document),
    )


def _asset(name: str) -> str:
    return files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: list[str]) -> str:
    """Only these scripts run, by their digests, and nothing is fetched: a string that slipped through stays text."""
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {digests}; {rest}"


def _json(value: Any) -> str:
    """JSON that a script element may hold: no character in it can end the element or begin a comment.

    What is no number (NaN, infinity) becomes null: a gap in the drawing.
    """
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _charts(blocks: tuple[Block, ...]) -> list[Chart]:
    found: list[Chart] = []
    for block in blocks:
        if isinstance(block, Chart):
            found.append(block)
        elif isinstance(block, (Details, More)):
            found += _charts(block.blocks)
    return found


def _all_charts(document: Document) -> list[Chart]:
    return [chart for section in document.sections for chart in _charts(section.blocks)]


def _ids(document: Document) -> dict[int, str]:
    return {id(chart): f"chart-{number}" for number, chart in enumerate(_all_charts(document))}


def _numbered(document: Document) -> dict[str, dict[str, Any]]:
    return {
        f"chart-{number}": {"kind": chart.kind, "data": chart.data}
        for number, chart in enumerate(_all_charts(document))
    }
