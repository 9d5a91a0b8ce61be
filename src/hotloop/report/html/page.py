"""The page: the template filled, scripts and styles put in, and nothing else allowed to run."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hotloop.report.document import Document
from hotloop.report.html.drawing.draw import draw
from hotloop.report.html.manual import manual_html

_PACKAGE = "hotloop.report.html"


def page(document: Document, manual: dict[str, str]) -> str:
    """Return the page.

    Args:
        document: what it shows.
        manual: pages by name, as Markdown; links to them stay inside the page.
    """
    scripts = [_asset("page.js")]
    environment = Environment(
        loader=PackageLoader(_PACKAGE, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["kind"] = lambda block: block.__struct_config__.tag
    return environment.get_template("page.html.j2").render(
        document=document,
        manual={name: Markup(manual_html(text)) for name, text in sorted(manual.items())},
        style=Markup(_asset("page.css")),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        draw=draw,
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
