"""Findings as JSON, under `findings`, with the field names of the contract."""

import json
from collections.abc import Sequence

from hotloop.model.finding import Finding
from hotloop.model.foreign_text import encodable
from hotloop.model.ratio import Ratio

SCHEMA = 1


def render_json(findings: Sequence[Finding], num_files: int) -> str:
    """One JSON document; what was not measured is null."""
    document = {
        "schema": SCHEMA,
        "num_files": num_files,
        "findings": [_plain(finding) for finding in findings],
    }
    return json.dumps(encodable(document), indent=2) + "\n"


def _plain(value: Finding | Ratio) -> dict[str, object]:
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    return {name: _plain(inner) if isinstance(inner, Ratio) else inner for name, inner in fields.items()}
