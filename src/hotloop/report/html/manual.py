"""Manual pages as HTML; they are ours, and are escaped all the same."""

from __future__ import annotations

from markdown_it import MarkdownIt


def manual_html(text: str) -> str:
    """Return a page; raw HTML in it is shown as text, and its headings stand below those of the report."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1:]) + 3)}"
    rendered: str = parser.renderer.render(tokens, parser.options, {})
    return rendered
