"""The formats hold what their readers ask for."""

import json

from hotloop.model.finding import Finding, Severity
from hotloop.model.ratio import Ratio
from hotloop.report.formats.github import render_github
from hotloop.report.formats.lint_json import render_json
from hotloop.report.formats.sarif import render_sarif
from hotloop.report.terminal.lint import render_text

AT_A_LINE = Finding(
    code="sync-in-step",
    title="The host waits",
    severity=Severity.WARNING,
    path="dir with space/train.py",
    line=7,
    evidence=".item() on a tensor",
    advice="Keep it.",
    optimization="deferred_sync",
)
AT_A_METRIC = Finding(
    code="input-bound",
    title="The step waits for data",
    severity=Severity.ERROR,
    metric="phases.data.share",
    cost_s=0.25,
    gain=Ratio(1.5, 1.25, 1.75),
    evidence="66% of the step\nis data",
    advice="Give the loader workers, 100%.",
)
BOTH = [AT_A_LINE, AT_A_METRIC]


def test_json_has_the_names_of_the_contract() -> None:
    document = json.loads(render_json(BOTH, 3))
    assert document["schema"] == 1
    first, second = document["findings"]
    assert {
        "code",
        "title",
        "severity",
        "path",
        "line",
        "metric",
        "cost_s",
        "gain",
        "evidence",
        "optimization",
    } <= set(first)
    assert first["cost_s"] is None
    assert first["severity"] == "warning"
    assert second["gain"] == {"ratio": 1.5, "low": 1.25, "high": 1.75}


def test_sarif_has_the_shape_of_2_1_0() -> None:
    log = json.loads(render_sarif(BOTH, "1.2.3", {"sync-in-step": "# sync-in-step"}))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "hotloop"
    assert [rule["id"] for rule in driver["rules"]] == ["input-bound", "sync-in-step"]
    for rule in driver["rules"]:
        assert set(rule) <= {"id", "name", "shortDescription", "help"}
        assert isinstance(rule["shortDescription"]["text"], str)
    for result in run["results"]:
        assert set(result) <= {"ruleId", "ruleIndex", "level", "message", "locations"}
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["message"]["text"]
    location = run["results"][0]["locations"][0]["physicalLocation"]
    assert location == {
        "artifactLocation": {"uri": "dir%20with%20space/train.py"},
        "region": {"startLine": 7},
    }
    assert "locations" not in run["results"][1]


def test_sarif_without_findings_is_a_complete_log() -> None:
    log = json.loads(render_sarif([], "1.2.3", {}))
    assert log["runs"][0]["results"] == []
    assert log["runs"][0]["tool"]["driver"]["rules"] == []


def test_github_escapes_what_would_end_a_command() -> None:
    first, second = render_github(BOTH).splitlines()
    assert first.startswith(
        "::warning file=dir with space/train.py,line=7,title=sync-in-step%3A The host waits::"
    )
    assert second.startswith("::error title=")
    assert "%0A" in second
    assert "100%25" in second


def test_text_names_the_place_and_counts() -> None:
    text = render_text(BOTH, 3)
    assert "dir with space/train.py:7: warning[sync-in-step]" in text
    assert "waiting for data: error[input-bound]" in text
    assert "2 findings in 3 files: 1 error, 1 warning." in text
    assert render_text([], 1) == "No findings in 1 file.\n"
