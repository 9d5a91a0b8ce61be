"""Findings as SARIF 2.1.0, for code scanning."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from urllib.parse import quote

from hotloop.model.finding import Finding, Severity
from hotloop.model.foreign_text import shown

_LEVELS = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.ERROR: "error"}
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render_sarif(findings: Sequence[Finding], version: str, pages: Mapping[str, str]) -> str:
    """One SARIF log with one run.

    Args:
        findings: results of the run.
        version: of hotloop.
        pages: manual pages by code; a finding whose code has none gets its title as its rule's description.
    """
    codes = sorted({finding.code for finding in findings})
    index = {code: place for place, code in enumerate(codes)}
    titles = {finding.code: finding.title for finding in findings}
    driver = {
        "name": "hotloop",
        "version": version,
        "rules": [_rule(code, titles[code], pages.get(code)) for code in codes],
    }
    results = [_result(finding, index[finding.code]) for finding in findings]
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=2) + "\n"


def _rule(code: str, title: str, page: str | None) -> dict[str, object]:
    described: dict[str, object] = {"id": code, "name": code, "shortDescription": {"text": shown(title)}}
    if page is not None:
        described["help"] = {"text": page, "markdown": page}
    return described


def _result(finding: Finding, rule_index: int) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": shown(f"{finding.title}: {finding.evidence}. {finding.advice}")},
    }
    if finding.path is not None:
        result["locations"] = [{"physicalLocation": _location(finding.path, finding.line)}]
    return result


def _location(path: str, line: int | None) -> dict[str, object]:
    pure = PurePath(path)
    uri = pure.as_uri() if pure.is_absolute() else quote(os.fsencode(pure))
    location: dict[str, object] = {"artifactLocation": {"uri": uri}}
    if line is not None:
        location["region"] = {"startLine": line}
    return location
