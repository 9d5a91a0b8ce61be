"""The verdict of a gate as JUnit XML, as a GitHub annotation and as Markdown."""

from __future__ import annotations

import shlex
from xml.sax.saxutils import escape, quoteattr

from hotloop.model.foreign_text import shown
from hotloop.model.gate import GateVerdict
from hotloop.model.outcome import Outcome
from hotloop.model.quantities import duration, percent
from hotloop.report.content.figures import speedup
from hotloop.report.markdown import code, text


def junit(verdict: GateVerdict) -> str:
    """Return one test suite with one test."""
    name = quoteattr(shown(shlex.join(verdict.command)))
    message = quoteattr(shown(verdict.sentence))
    kind = {Outcome.FAILED: "failure", Outcome.NOT_JUDGED: "error"}.get(verdict.outcome)
    found = f"<{kind} message={message}/>" if kind else ""
    failures, errors = (int(verdict.outcome is one) for one in (Outcome.FAILED, Outcome.NOT_JUDGED))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name="hotloop check" tests="1" failures="{failures}" errors="{errors}" skipped="0">'
        f'<testcase classname="hotloop.check" name={name} time="{verdict.now_s:.6f}">{found}'
        f"<system-out>{escape(shown(verdict.sentence))}</system-out></testcase></testsuite>\n"
    )


def annotation(verdict: GateVerdict) -> str:
    """Return a GitHub workflow command."""
    settled = "notice" if verdict.passed and verdict.proven else "warning"
    level = "error" if verdict.outcome is Outcome.FAILED else settled
    message = shown(verdict.sentence).replace("%", "%25")
    return f"::{level} title=hotloop check::{message}\n"


def gate_markdown(verdict: GateVerdict) -> str:
    """Return a summary for a pull request or a job."""
    word = "failed: a slowdown is proven" if verdict.outcome is Outcome.FAILED else verdict.word
    before, now = verdict.num_runs
    return "\n".join(
        (
            f"### hotloop check {word}",
            "",
            text(shown(verdict.sentence)),
            "",
            "| | baseline | now |",
            "|---|---:|---:|",
            f"| step | {duration(verdict.before_s)} | {duration(verdict.now_s)} |",
            f"| runs | {before} | {now} |",
            f"| time now over then | | {text(speedup(verdict.slowdown))} |",
            f"| margin | | {text(percent(verdict.margin))} |",
            "",
            code(shown(shlex.join(verdict.command))),
            "",
        )
    )
